# SPDX-License-Identifier: Apache-2.0
"""Look at the libraries of wheels: what they export, name, need, and from which glibc on they run.

    check_wheel.py WHEEL...

Fails where a library has relocations in its code (TEXTREL), names a folder of the machine that
built it, exports what is not of pccl, or needs a newer glibc than in the wheel's tag; and where a
wheel lacks a library, or its plug-in for NCCL a version of NCCL's interface.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names that a module of Python, torch's allocator, or a plugin of NCCL is found by.
ENTRIES = ("PyInit_", "pccl_", "ncclNetPlugin_v")
# Folders of people, and of clones, but for what any machine has.
FOLDER = re.compile(
    r"(?<![\w.])/(?:home|root|work|tmp|build|Users)/[\w.+/-]+|[\w./-]*\.venv/[\w./-]+"
)
# Libraries of each wheel; the second one is NCCL's net plug-in (`pccl nccl-plugin`).
REQUIRED = ("pccl/libpccl.so", "pccl/libnccl-net-pccl.so")
NCCL_TABLES = [f"ncclNetPlugin_v{version}" for version in range(6, 13)]
# Files that the library itself opens or makes there.
OWN_FILES = ("/tmp/pccl",)


def faults(wheel: Path) -> list[str]:
    """Return a line for each fault of a wheel; a good wheel has none."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        libraries = sorted(Path(folder).rglob("*.so*"))
        if not libraries:
            return ["no library"]
        found = [
            f"{library.relative_to(folder)}: {fault}"
            for library in libraries
            for fault in _faults_of(library)
        ]
        return found + list(_missing(Path(folder))) + list(_wrong_tag(wheel, libraries))


def needed_glibc(library: Path) -> tuple[int, int]:
    """Return the oldest glibc that has all symbols that a library needs."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", _output("readelf", "--version-info", library))
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def _missing(folder: Path) -> Iterator[str]:
    for name in REQUIRED:
        if not (folder / name).exists():
            yield f"lacks {name}"
    plugin = folder / REQUIRED[1]
    exported = _exports(plugin) if plugin.exists() else NCCL_TABLES
    yield from (f"{REQUIRED[1]}: lacks {name}" for name in NCCL_TABLES if name not in exported)


def _faults_of(library: Path) -> Iterator[str]:
    dynamic = _output("readelf", "--dynamic", library)
    if "TEXTREL" in dynamic:
        yield "TEXTREL: its code is changed when it is loaded, and shared by no two processes"
    for path in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", dynamic):
        yield from (f"RPATH {part}" for part in path.split(":") if not part.startswith("$ORIGIN"))
    texts = _output("strings", library)
    for path in sorted(set(FOLDER.findall(texts))):
        if not path.startswith(OWN_FILES):
            yield f"names {path}"
    for name in _exports(library):
        if "pccl::" not in name and not name.startswith(ENTRIES):
            yield f"exports {name}"


def _exports(library: Path) -> list[str]:
    # What was carried along from elsewhere has names of its own.
    if "pccl" not in library.name and not library.name.startswith(("_core", "_torch")):
        return []
    lines = _output("nm", "--dynamic", "--demangle", "--defined-only", library).splitlines()
    return [line.split(maxsplit=2)[2] for line in lines]


def _wrong_tag(wheel: Path, libraries: list[Path]) -> Iterator[str]:
    tags = re.findall(r"manylinux_(\d+)_(\d+)_", wheel.name)
    needed = max(map(needed_glibc, libraries))
    if tags and needed > min((int(major), int(minor)) for major, minor in tags):
        yield f"needs glibc {needed[0]}.{needed[1]}"


def _output(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Print the faults of all wheels that are named, and fail where there are some."""
    found = [
        f"{wheel.name}: {fault}" for wheel in map(Path, sys.argv[1:]) for fault in faults(wheel)
    ]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

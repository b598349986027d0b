# SPDX-License-Identifier: Apache-2.0
"""Check that each C++ file compiles alone: that it includes all that it uses.

    check_alone.py <build folder with compile_commands.json of single files>

Builds compile the files of a folder together (cmake/pccl_unity.cmake), where one profits from what
another includes. Sources are checked as they are compiled, and so are headers that no source of
their name includes first. A file that passed is checked again when it, or a header that it
reaches, or its compile command has changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from run_clang_tidy import CACHE, ROOT, Source, note_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES = CACHE / "alone"
# Headers of CUDA code are compiled by nvcc, and those of Python's modules need other headers first.
ELSEWHERE = ("csrc/torch", "csrc/bindings", "csrc/kernels", "csrc/extension")


def lone_headers(sources: dict[Path, Source]) -> Iterator[Path]:
    """Give the headers that are the first include of no source."""
    for header in sorted([*(ROOT / "csrc").rglob("*.h"), *(ROOT / "include").rglob("*.h")]):
        twins = (header.with_suffix(".cc"), header.with_name(f"{header.stem}_cuda.cc"))
        if not any(twin in sources for twin in twins) and not str(
            header.relative_to(ROOT)
        ).startswith(ELSEWHERE):
            yield header


def flags_for(header: Path, sources: dict[Path, Source]) -> tuple[str, ...]:
    """Give the flags of the source that is nearest to a header."""
    for folder in header.parents:
        for file, source in sources.items():
            if file.is_relative_to(folder):
                return source.flags
    raise LookupError(header)


def complaint(source: Source, compiler: str) -> str:
    """Return the output of the compiler for a file, or nothing."""
    note = NOTES / note_of(source, compiler.encode())
    if note.exists():
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as unit:
        unit.write(f'#include "{source.file.relative_to(ROOT)}"\n')
        unit.flush()
        done = subprocess.run(
            [compiler, *source.flags, "-fsyntax-only", unit.name],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        note.touch()
        return ""
    return done.stderr or f"{source.file}: {compiler} ended with {done.returncode}"


def main() -> int:
    NOTES.mkdir(parents=True, exist_ok=True)
    build = Path(sys.argv[1]).resolve()
    compiler = os.environ.get("CXX", "c++")
    sources = sources_of(build, "csrc", "tests")
    files = list(sources.values())
    files += [Source(header, flags_for(header, sources)) for header in lone_headers(sources)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = list(pool.map(lambda file: complaint(file, compiler), files))
    complaints = [text for text in printed if text]
    print(*complaints, sep="\n", end="" if not complaints else "\n")
    print(f"alone: {len(complaints)} of {len(files)} files do not compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

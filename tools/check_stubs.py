# SPDX-License-Identifier: Apache-2.0
"""Compare the stubs of pccl._core and pccl._torch with the modules, unless that passed before.

    check_stubs.py <build folder>

Reading torch takes stubtest half a minute, each time. What passed is noted in
~/.cache/pccl/stubtest, for all clones: a digest of the stubs, of the package, of the modules as
built, and of the versions of what is read with them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTES = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pccl" / "stubtest"
ALLOWLIST = ROOT / "tools" / "stubtest_allowlist.txt"
MODULES = ("pccl._core", "pccl._torch")
READ_WITH_THEM = ("mypy", "numpy", "torch")


def state(build: Path) -> str:
    """Give a digest of all that the outcome depends on."""
    found = hashlib.sha256(sys.version.encode())
    for name in READ_WITH_THEM:
        found.update(f"{name} {version(name)}\n".encode())
    sources = [path for path in (ROOT / "python").rglob("*") if path.suffix in {".py", ".pyi"}]
    built = (build / "python" / "pccl").glob("*.so")
    for path in (ALLOWLIST, ROOT / "pyproject.toml", *sorted(sources), *sorted(built)):
        found.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def stubtest(build: Path) -> int:
    """Run it; give its exit status."""
    command = [Path(sys.executable).parent / "stubtest", *MODULES, "--allowlist", ALLOWLIST]
    environment = os.environ | {"PYTHONPATH": str(build / "python")}
    return subprocess.run(
        [*command, "--ignore-unused-allowlist"], cwd=ROOT, env=environment, check=False
    ).returncode


def main() -> int:
    """Check what has not passed yet."""
    build = Path(sys.argv[1]).resolve()
    note = NOTES / state(build)
    if note.exists():
        print("stubtest: passed before")
        return 0
    result = stubtest(build)
    if result == 0:
        NOTES.mkdir(parents=True, exist_ok=True)
        note.touch()
    return result


if __name__ == "__main__":
    sys.exit(main())

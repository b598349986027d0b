# SPDX-License-Identifier: Apache-2.0
"""NIXL's own Python tests over one of its plugins: ``python upstream.py NIXL_SOURCES PLUGIN``,
and then options of pytest.

It copies them out of the sources of NIXL, names the plugin where they name UCX without being asked,
and runs them with pytest; README.md lists what they are and what came of them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

FILES = ("conftest.py", "test_nixl_api.py", "test_nixl_bindings.py")
FIXED = 'createBackend("UCX"'


def copy_tests(sources: Path, plugin: str, into: Path) -> None:
    for name in FILES:
        text = (sources / "test" / "python" / name).read_text()
        (into / name).write_text(text.replace(FIXED, f'createBackend("{plugin}"'))


def main() -> int:
    sources, plugin = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        copy_tests(sources, plugin, Path(folder))
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
        chosen = ["--backend", plugin, *sys.argv[3:], folder]
        return subprocess.run([*command, *chosen], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

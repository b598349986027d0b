# SPDX-License-Identifier: Apache-2.0
"""An environment for each client, which sees torch and the tools of .venv, and build/dev."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "clients"
PACKAGE = ROOT / "build" / "dev" / "python"
LONGEST_LINE = 200


class NotInstalledError(Exception):
    """A client cannot be installed here; the text is pip's reason."""


def environment(name: str, client: Mapping[str, Any]) -> Path:
    """Return the Python of a client's environment, which is made unless it is there already."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    packages = {key: value for key, value in client.items() if key != "runs"}
    wanted = json.dumps([packages, sys.version, version("torch"), str(PACKAGE)])
    note = folder / "installed.json"
    if note.exists() and note.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    # Paths in a file are searched after the folder itself: the client's versions come first.
    (site / "shared.pth").write_text(f"{PACKAGE}\n{tools_of_venv()}\n")
    limits = folder / "constraints.txt"
    limits.write_text(f"torch=={version('torch')}\n")
    pip(python, "install", "--constraint", str(limits), *client["requires"])
    pip(python, "install", "--no-deps", *client.get("without_dependencies", []))
    pip(python, "uninstall", "--yes", *client.get("remove", []))
    note.write_text(wanted)
    return python


def tools_of_venv() -> Path:
    """Return the folder of the packages of the Python that runs this."""
    import pytest

    return Path(pytest.__file__).parents[1]


def pip(python: Path, *command: str) -> None:
    """Run a command of pip, unless it names no package."""
    if command[-1].startswith("-") or command[-1].endswith(".txt"):
        return
    done = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotInstalledError(reason_in(done.stderr.splitlines()))


def reason_in(lines: Sequence[str]) -> str:
    """Return the lines with an error, or else the last one, each shortened."""
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    chosen = errors or lines[-1:] or ["pip printed no reason"]
    return "; ".join(line[:LONGEST_LINE] for line in chosen)

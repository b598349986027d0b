# SPDX-License-Identifier: Apache-2.0
"""Installation of launchers into folders below build/launchers, and nowhere else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["Debian", "Missing", "Wheel"]

PLACES = Path(__file__).parents[2] / "build" / "launchers"
INSTALL_S = 600

# Lays the packages of a folder over /usr, for one command and its children alone.
OVERLAY = 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr && exec "$@"'


class Missing(Exception):
    """A launcher that cannot be installed here, with the reason."""


def run(command: list[str], why: str) -> None:
    """Run a command of an installation; raise ``Missing`` where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{why}: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Missing(f"{why}: {lines[-1] if lines else f'exit code {done.returncode}'}")


class Wheel:
    """Launcher of a wheel, in a virtual environment of its own; it has mpi4py, too."""

    def __init__(self, requirement: str) -> None:
        self.folder = PLACES / requirement.partition("=")[0]
        mark = self.folder / f"has-{requirement}"
        if not mark.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(self.folder)], "no virtual environment")
            pip = [str(self.folder / "bin/python"), "-m", "pip", "install", "--quiet"]
            # An index may lack libraries of fabrics that impi-rt requires; no job uses them here.
            run([*pip, "--no-deps", requirement], f"pip cannot install {requirement}")
            run([*pip, "mpi4py==4.1.2", "numpy"], "pip cannot install mpi4py")
            mark.touch()

    @property
    def python(self) -> str:
        """Interpreter that has mpi4py and numpy."""
        return str(self.folder / "bin/python")

    def command(self, name: str) -> list[str]:
        """Return the command that starts a program of the wheel."""
        return [str(self.folder / "bin" / name)]


class Debian:
    """Debian packages in a folder, which commands see below /usr."""

    def __init__(self, name: str, *packages: str) -> None:
        if os.geteuid() != 0:
            raise Missing("only root can lay Debian's packages over /usr")
        self.folder = PLACES / name
        mark = self.folder / f"has-{'-'.join(packages)}"
        if not mark.exists():
            self._install(packages)
            mark.touch()
        run([*self.command("true")], "no overlay of /usr")

    def _install(self, packages: tuple[str, ...]) -> None:
        archives = self.folder / "archives"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        run(["apt-get", "update"], "apt-get update fails")
        options = ("-o", f"Dir::Cache::archives={archives}", "-o", "APT::Sandbox::User=root")
        get = ["apt-get", *options, "--download-only", "--no-install-recommends", "-y", "install"]
        run([*get, *packages], f"apt-get cannot download {' '.join(packages)}")
        for archive in sorted(archives.glob("*.deb")):
            run(
                ["dpkg", "-x", str(archive), str(self.folder)], f"dpkg cannot unpack {archive.name}"
            )

    def command(self, name: str) -> list[str]:
        """Return the command that starts a program of the packages."""
        return ["unshare", "-m", "sh", "-c", OVERLAY, str(self.folder), name]

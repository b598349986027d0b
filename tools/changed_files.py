# SPDX-License-Identifier: Apache-2.0
"""What differs between the working tree and the commit it is compared with.

That is the one where this branch left the default branch. Changes that are not committed count. On
the default branch itself there is none: the number of its new commits is unknown.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_BRANCHES = ("origin/main", "main")


def git(*arguments: str) -> str | None:
    """Give what git prints, or None where it fails: no such commit, or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


@dataclass(frozen=True)
class Base:
    """A commit, and how people call it."""

    commit: str
    name: str

    def differing_files(self) -> set[Path]:
        """Give the files that are not as they were there, also those that are new or gone."""
        tracked = git("diff", "--name-only", "--no-renames", "-z", self.commit)
        new = git("ls-files", "--others", "--exclude-standard", "-z")
        assert tracked is not None
        assert new is not None
        return {ROOT / name for name in (tracked + new).split("\0") if name}

    def has_other_pin(self, tool: str) -> bool:
        """Return whether pyproject.toml required another version of a tool there."""
        then = git("show", f"{self.commit}:pyproject.toml") or ""
        pins = [_pin(text, tool) for text in (then, (ROOT / "pyproject.toml").read_text())]
        return pins[0] != pins[1]


def _pin(project: str, tool: str) -> str | None:
    found = re.search(rf'"{re.escape(tool)}==([^"]+)"', project)
    return found and found[1]


def base() -> Base | None:
    """Give what to compare with; None where there is nothing, as on the default branch."""
    head = git("rev-parse", "HEAD")
    for branch in DEFAULT_BRANCHES:
        fork = git("merge-base", branch, "HEAD")
        if fork is not None and fork != head:
            return Base(fork.strip(), f"the branch left {branch} at {fork[:7]}")
    return None

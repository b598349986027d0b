# SPDX-License-Identifier: Apache-2.0
"""The files, environment and devices of a host, as the checks read them."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Root", "cores_of"]

_MOST_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Root:
    """A root directory with ``/proc``, ``/sys`` and ``/dev``, and the environment of a process."""

    folder: Path = Path("/")
    environment: Mapping[str, str] = dataclasses.field(default_factory=lambda: os.environ)

    def path(self, name: str) -> Path:
        """Return the place of an absolute path in this root."""
        return self.folder / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if it cannot be read."""
        try:
            with self.path(name).open("rb") as file:
                return file.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        """Return the integer that a file contains; None if it contains none."""
        found = re.fullmatch(r"\s*(-?\d{1,20})\s*", self.text(name) or "")
        return int(found[1]) if found else None

    def status(self, field: str) -> str | None:
        """Return a field of ``/proc/self/status``."""
        found = re.search(rf"^{field}:\s*(.*)$", self.text("/proc/self/status") or "", re.MULTILINE)
        return found[1].strip() if found else None

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none if it cannot be read."""
        try:
            return sorted(os.listdir(self.path(folder)))  # noqa: PTH208 (names alone)
        except OSError:
            return []

    def space(self, name: str) -> tuple[int, int] | None:
        """Return the total and the free bytes of the file system of a path."""
        try:
            found = os.statvfs(self.path(name))
        except OSError:
            return None
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def link(self, name: str) -> str | None:
        """Return the target of a symbolic link; None if there is none."""
        try:
            return str(self.path(name).readlink())
        except OSError:
            return None


def cores_of(text: str) -> frozenset[int]:
    """Return the numbers of a list such as ``"0-3,8"``, of cores or memory nodes."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if found:
            numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(numbers)

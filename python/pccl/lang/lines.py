# SPDX-License-Identifier: Apache-2.0
"""Lines of a user's Python, and places of steps."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ["Line", "Place"]

Place: TypeAlias = tuple[int, int, int]  # rank, lane, step


class Line(NamedTuple):
    """A line of a file of Python."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """What it says."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        shown = f"{Path(self.file).name}:{self.number}"
        return f"{shown}: {self.text}" if self.text else shown

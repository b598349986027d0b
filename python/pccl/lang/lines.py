# SPDX-License-Identifier: Apache-2.0
"""Lines of user code, and places of steps."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ["Line", "Place"]

Place: TypeAlias = tuple[int, int, int]  # rank, lane, step


class Line(NamedTuple):
    """Line of a Python file."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """Text of the line, without surrounding white space."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        shown = f"{Path(self.file).name}:{self.number}"
        return f"{shown}: {self.text}" if self.text else shown

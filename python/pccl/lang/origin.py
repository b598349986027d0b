"""Lines of a user's Python, and the errors that name them."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pccl.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Line", "Place", "ProgramError", "blame", "caller", "line_of"]

Place: TypeAlias = tuple[int, int, int]  # rank, lane, step

_HERE = str(Path(__file__).parent)
_PLACE = re.compile(r"rank (\d+) lane (\d+) step (\d+)")


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


class ProgramError(InvalidArgumentError):
    """An algorithm is wrong; the message names the line of it, and the steps in conflict.

    Attributes
    ----------
    line
        Where the mistake is.
    """

    line: Line

    def __init__(self, line: Line, what: str) -> None:
        super().__init__(f"{line}\n  {what}")
        self.line = line


def caller() -> Line:
    """Return the line that called into the language."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


def line_of(function: Callable[..., object]) -> Line:
    """Return the line where a function begins."""
    return Line(function.__code__.co_filename, function.__code__.co_firstlineno)


def blame(message: str, origins: Mapping[Place, tuple[Line, ...]], otherwise: Line) -> ProgramError:
    """Return the error for what the verifier says: the first step that it names is to blame.

    Parameters
    ----------
    message
        The verifier's.
    origins
        The lines that each step came from.
    otherwise
        Whom to blame where it names no step.
    """
    found: list[Place] = []
    for match in _PLACE.finditer(message):
        rank, lane, step = map(int, match.groups())
        if (rank, lane, step) in origins and (rank, lane, step) not in found:
            found.append((rank, lane, step))
    if not found:
        return ProgramError(otherwise, message)
    shown = [
        f"rank {rank} lane {lane} step {step} is of {line}"
        for rank, lane, step in found
        for line in origins[rank, lane, step]
    ]
    return ProgramError(origins[found[0]][0], "\n  ".join([message, *shown]))

# SPDX-License-Identifier: Apache-2.0
"""Lines of user code, and the errors that name them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pccl.errors import InvalidArgumentError
from pccl.lang.lines import Line, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import matplotlib.figure

    from pccl._core import Schedule

__all__ = ["Conflict", "Line", "Place", "ProgramError", "blame", "caller", "line_of", "places_in"]

_HERE = str(Path(__file__).parent)
_PLACE = re.compile(r"rank (\d+) lane (\d+) step (\d+)")


class Conflict(NamedTuple):
    """Counter-example that the verifier found.

    Attributes
    ----------
    what
        Message of the verifier.
    schedule
        Schedule with the steps of all ranks.
    places
        Places of the steps in conflict; the faulty one is first.
    lines
        Lines of Python, by place.
    """

    what: str
    schedule: Schedule
    places: tuple[Place, ...]
    lines: Mapping[Place, tuple[Line, ...]]


class ProgramError(InvalidArgumentError):
    """Error in an algorithm; the message names its line and the steps in conflict.

    Attributes
    ----------
    line
        Line of the mistake.
    conflict
        Steps in conflict, where the verifier found any; otherwise None.
    """

    line: Line
    conflict: Conflict | None

    def __init__(self, line: Line, what: str, conflict: Conflict | None = None) -> None:
        super().__init__(f"{line}\n  {what}")
        self.line = line
        self._what = what
        self.conflict = conflict

    def for_ranks(self, ranks: int) -> ProgramError:
        """Return the same error with the number of ranks, for an algorithm for several numbers.

        Parameters
        ----------
        ranks
            Number of ranks for which the algorithm is wrong.
        """
        return ProgramError(self.line, f"for {ranks} ranks: {self._what}", self.conflict)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the steps in conflict, with the neighbouring steps.

        Returns
        -------
        matplotlib.figure.Figure
            Figure with a column for each lane that has a step in conflict.

        Raises
        ------
        ValueError
            The error has no step: a call in that line is wrong.
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        if self.conflict is None:
            raise ValueError("it is no step that is wrong, but the call in that line")
        from pccl.lang.error_plot import draw_conflict

        what, schedule, places, lines = self.conflict
        return draw_conflict(schedule, places, lines, what)


def caller() -> Line:
    """Return the line of user code that called into ``pccl.lang``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


def line_of(function: Callable[..., object]) -> Line:
    """Return the line where a function begins."""
    return Line(function.__code__.co_filename, function.__code__.co_firstlineno)


def places_in(message: str) -> list[Place]:
    """Return the steps that a message of the verifier names, each once, in order of appearance."""
    found = [(int(rank), int(lane), int(step)) for rank, lane, step in _PLACE.findall(message)]
    return list(dict.fromkeys(found))


def blame(
    message: str,
    schedule: Schedule,
    origins: Mapping[Place, tuple[Line, ...]],
    otherwise: Line,
) -> ProgramError:
    """Return the error for a message of the verifier: the first named step is the faulty one.

    Parameters
    ----------
    message
        Message of the verifier.
    schedule
        Schedule that the verifier rejected.
    origins
        Source lines of each step.
    otherwise
        Line of the error where the message names no step.
    """
    found = [place for place in places_in(message) if place in origins]
    if not found:
        return ProgramError(otherwise, message)
    shown = [
        f"rank {rank} lane {lane} step {step} is of {line}"
        for rank, lane, step in found
        for line in origins[rank, lane, step]
    ]
    conflict = Conflict(message, schedule, tuple(found), {each: origins[each] for each in found})
    return ProgramError(origins[found[0]][0], "\n  ".join([message, *shown]), conflict)

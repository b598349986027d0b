# SPDX-License-Identifier: Apache-2.0
"""When the steps of a replay happen."""

from __future__ import annotations

from dataclasses import dataclass

from pccl import table

__all__ = ["StepTime"]


@dataclass(frozen=True)
class StepTime:
    """When one step of a rank happens; times are seconds from the beginning.

    Attributes
    ----------
    rank, lane, index
        Whose it is; the index counts the steps of the lane.
    action
        As ``pccl.schedule`` names it.
    sender, receiver
        The ranks at the other ends of the message it receives and of that which it sends; -1 for
        none.
    bytes
        That it handles.
    begin
        All that it waits for has happened.
    start
        It has added up what it adds, and its message starts.
    done
        The last byte of its message has left.
    arrival
        That has arrived; ``done`` where it sends nothing.
    window
        Of the data, where links do not hold all of it at once.
    """

    rank: int
    lane: int
    index: int
    action: str
    sender: int
    receiver: int
    bytes: float
    begin: float
    start: float
    done: float
    arrival: float
    window: int = 0

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)

# SPDX-License-Identifier: Apache-2.0
"""Times of the steps of a replay."""

from __future__ import annotations

from dataclasses import dataclass

from pccl.results import table

__all__ = ["StepTime"]


@dataclass(frozen=True)
class StepTime:
    """Times of one step of a rank, in seconds from the beginning.

    Attributes
    ----------
    rank, lane, index
        Rank, lane, and index of the step within the lane.
    action
        Action, as in ``pccl.schedule``.
    sender, receiver
        Rank that sent the received message, and rank that receives the sent message; -1 for none.
    bytes
        Bytes that the step processes.
    begin
        Time at which all dependencies are satisfied.
    start
        Time at which its reduction is complete and its message starts.
    done
        Time at which the last byte of its message has left.
    arrival
        Time at which the last byte has arrived; ``done`` without a message.
    window
        Window of the data, where links cannot buffer all of it.
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
        """Return the fields."""
        return table.fields_of(self)

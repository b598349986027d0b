# SPDX-License-Identifier: Apache-2.0
"""Elements of a measured timeline: steps, and the messages between them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Hop", "MeasuredStep", "call_of", "hops_of", "slowest_of"]

# Pipelined hops are all as slow as the slowest of them, usually the first one.
ABOUT_AS_SLOW = 0.9


@dataclass(frozen=True)
class MeasuredStep:
    """Measured times of one step of a rank, in seconds from the first step of all ranks.

    Attributes
    ----------
    rank, call, window
        Rank; number of the collective of the group, from 1; window of the data, where links cannot
        buffer all of it.
    lane, index
        Position in the schedule; the index counts the steps of the lane.
    action
        Action, as in ``pccl.schedule``.
    sender, receiver
        Rank that sent the received message, and rank that receives the sent message; -1 for none.
    from_channel, to_channel
        Channels of these messages.
    bytes
        Bytes that the step processes.
    is_on_gpu
        Whether the GPU of the rank ran the step. Then the times cover all thread blocks that share
        the lane, from the first start to the last end, and ``call`` counts only schedules on the
        GPU.
    begin
        Time at which its lane reached it and its dependencies on this rank were complete.
    moved
        Time at which its first bytes arrived or left. On a GPU: time at which its message or slot
        was ready; the protocols ll and ll128 wait for each word or line separately instead.
    end
        Time at which all bytes had arrived and were passed to their link.
    """

    rank: int
    call: int
    window: int
    lane: int
    index: int
    action: str
    sender: int
    from_channel: int
    receiver: int
    to_channel: int
    bytes: int
    is_on_gpu: bool
    begin: float
    moved: float
    end: float

    def row(self) -> table.Fields:
        """Return the fields."""
        return table.fields_of(self)


@dataclass(frozen=True)
class Hop:
    """A message from one rank to another.

    Attributes
    ----------
    sent, received
        Sending step and receiving step.
    """

    sent: MeasuredStep
    received: MeasuredStep

    @property
    def begin(self) -> float:
        """Time in seconds at which the sender sends and the receiver waits."""
        return max(self.sent.moved, self.received.begin)

    @property
    def seconds(self) -> float:
        """Seconds from ``begin`` until the receiver has the message."""
        return self.received.end - self.begin

    def row(self) -> table.Fields:
        """Return the ranks, call, window, bytes and times."""
        return {
            "sender": self.sent.rank,
            "receiver": self.received.rank,
            "call": self.sent.call,
            "window": self.sent.window,
            "bytes": self.sent.bytes,
            "begin": self.begin,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        return (
            f"rank {self.sent.rank} to rank {self.received.rank}, {self.sent.bytes} bytes in "
            f"{self.seconds * 1e6:.1f} us"
        )


def call_of(steps: Iterable[MeasuredStep], call: int) -> list[MeasuredStep]:
    """Return the steps of a call, with times relative to its first step."""
    own = [step for step in steps if step.call == call]
    first = min((step.begin for step in own), default=0.0)
    return [
        dataclasses.replace(
            step, begin=step.begin - first, moved=step.moved - first, end=step.end - first
        )
        for step in own
    ]


def hops_of(steps: Iterable[MeasuredStep]) -> list[Hop]:
    """Return the messages with two recorded ends; ``steps`` are in order for each rank.

    Messages with the same sender, receiver and channel keep their order.
    """
    sends: dict[tuple[int, ...], list[MeasuredStep]] = defaultdict(list)
    receives: dict[tuple[int, ...], list[MeasuredStep]] = defaultdict(list)
    for step in steps:
        if step.receiver >= 0:
            sends[step.is_on_gpu, step.rank, step.receiver, step.to_channel, step.call].append(step)
        if step.sender >= 0:
            receives[step.is_on_gpu, step.sender, step.rank, step.from_channel, step.call].append(
                step
            )
    hops = [
        Hop(sent, received)
        for way, some in sends.items()
        for sent, received in zip(some, receives[way], strict=False)
    ]
    return sorted(hops, key=lambda hop: hop.begin)


def slowest_of(hops: list[Hop]) -> Hop | None:
    """Return the first hop among those within 10 % of the slowest."""
    if not hops:
        return None
    most = max(hop.seconds for hop in hops)
    return next(hop for hop in hops if hop.seconds >= ABOUT_AS_SLOW * most)

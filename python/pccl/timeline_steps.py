# SPDX-License-Identifier: Apache-2.0
"""What a measured timeline is made of: steps, and the messages between them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pccl import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Hop", "MeasuredStep", "call_of", "hops_of", "slowest_of"]

# Hops through which the same bytes flow are as slow as the slowest of them: the first one is.
ABOUT_AS_SLOW = 0.9


@dataclass(frozen=True)
class MeasuredStep:
    """When one step of a rank happened; times are seconds from the first step of all.

    Attributes
    ----------
    rank, call, window
        Whose it is; of which collective of the group, counted from 1; of which part of its data,
        where that is more than goes at once.
    lane, index
        As in the schedule; the index counts the steps of the lane.
    action
        As ``pccl.schedule`` names it.
    sender, receiver
        The ranks at the other ends of the message it receives and of that which it sends; -1 for
        none.
    from_channel, to_channel
        Of these messages.
    bytes
        That it handles.
    is_on_gpu
        Whether the rank's GPU did it: then it is that of all blocks which share the lane, from when
        the first came to it until the last was through, and calls count schedules on the GPU alone.
    begin
        Its lane came to it, and what it waits for on this rank had been done.
    moved
        Its first bytes came or went; on a GPU, what it waits for was there, but for words and
        lines, each of which it awaits by itself.
    end
        All had come, and were handed to their link.
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
        """Return its fields."""
        return table.fields_of(self)


@dataclass(frozen=True)
class Hop:
    """A message from one rank to another.

    Attributes
    ----------
    sent, received
        The steps at its ends.
    """

    sent: MeasuredStep
    received: MeasuredStep

    @property
    def begin(self) -> float:
        """Seconds: the sender sends, and the receiver waits for it."""
        return max(self.sent.moved, self.received.begin)

    @property
    def seconds(self) -> float:
        """From then on until the receiver has it."""
        return self.received.end - self.begin

    def row(self) -> table.Fields:
        """Return who, how much and how long."""
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
    """Return the steps of a call, with times from its first one on."""
    own = [step for step in steps if step.call == call]
    first = min((step.begin for step in own), default=0.0)
    return [
        dataclasses.replace(
            step, begin=step.begin - first, moved=step.moved - first, end=step.end - first
        )
        for step in own
    ]


def hops_of(steps: Iterable[MeasuredStep]) -> list[Hop]:
    """Return the messages whose both ends were recorded; ``steps`` are in order for each rank.

    The messages of a sender, receiver and channel keep their order.
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
    """Return the hop that took longest; of those about as slow, the one that began first."""
    if not hops:
        return None
    most = max(hop.seconds for hop in hops)
    return next(hop for hop in hops if hop.seconds >= ABOUT_AS_SLOW * most)

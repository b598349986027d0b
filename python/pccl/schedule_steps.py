# SPDX-License-Identifier: Apache-2.0
"""The steps of a schedule, and in which round each of them runs."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pccl import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Dependency", "Port", "Step", "rounds_of"]


class Port(NamedTuple):
    """One end of a queue of messages between two ranks, seen from the rank that runs the step.

    Attributes
    ----------
    peer
        The rank at the other end.
    channel
        Which queue, where there are several between the two.
    """

    peer: int
    channel: int


class Dependency(NamedTuple):
    """What must be done first: steps of the same rank.

    Attributes
    ----------
    lane
        Of that rank, whose steps run in order.
    step
        The last of them, counted from 0 in the lane.
    """

    lane: int
    step: int


class Step(NamedTuple):
    """A step of a rank's program. The steps of a lane run in order, lanes run side by side.

    Attributes
    ----------
    rank, lane, step
        Where it stands; ``step`` counts from 0 in its lane.
    action
        ``"send"``, ``"recv_reduce"``, ...: csrc/schedule/schedule.h has them all.
    text
        All that it does: ``"recv_reduce input[3+1] -> output[3+1] from 2/0 after 1:4"``, with
        slices as chunk+number of chunks, ports as peer/channel and what must be done before as
        lane:step.
    receives, sends
        Where its message comes from, and where it sends one to; None where there is none.
    after
        What other lanes of the rank must have done before.
    """

    rank: int
    lane: int
    step: int
    action: str
    text: str
    receives: Port | None
    sends: Port | None
    after: tuple[Dependency, ...]

    def row(self) -> table.Fields:
        """Return its fields, with ports as peers."""
        fields = table.fields_of(self)
        for name in ("receives", "sends", "after"):
            del fields[name]
        return fields | {
            "receives_from": self.receives.peer if self.receives else None,
            "sends_to": self.sends.peer if self.sends else None,
        }


_Place: TypeAlias = tuple[int, int]  # rank, lane


def rounds_of(steps: Iterable[Step]) -> dict[Step, int]:
    """Return when each step runs, if a message takes one round and all else takes none.

    Parameters
    ----------
    steps
        Those of a schedule that ``verify`` accepts. Queues count as long enough.

    Raises
    ------
    ValueError
        A step waits for what never comes.
    """
    lanes: dict[_Place, list[Step]] = collections.defaultdict(list)
    for step in steps:
        lanes[step.rank, step.lane].append(step)
    clock = _Clock()
    waiting = dict(lanes)
    while waiting:
        moved = [clock.advance(place, lane) for place, lane in waiting.items()]
        if not any(moved):
            raise ValueError("a step waits for what never comes")
        waiting = {place: lane for place, lane in waiting.items() if not clock.is_over(place, lane)}
    return {
        step: time
        for place, lane in lanes.items()
        for step, time in zip(lane, clock.ended[place], strict=True)
    }


class _Clock:
    """The rounds in which the steps of lanes ran, as far as they are known."""

    def __init__(self) -> None:
        self.ended: dict[_Place, list[int]] = collections.defaultdict(list)
        # By sender, receiver and channel: when the messages that nobody has taken arrive.
        self._queues: dict[tuple[int, int, int], collections.deque[int]] = collections.defaultdict(
            collections.deque
        )

    def is_over(self, place: _Place, lane: list[Step]) -> bool:
        return len(self.ended[place]) == len(lane)

    def advance(self, place: _Place, lane: list[Step]) -> bool:
        """Run a lane as far as it gets; tell whether that was a step or more."""
        ended = self.ended[place]
        before = len(ended)
        for step in lane[before:]:
            if (time := self._begin(step)) is None:
                break
            if step.sends:
                message = (step.rank, *step.sends)
                self._queues[message].append(time + 1)
            ended.append(time)
        return len(ended) > before

    def _begin(self, step: Step) -> int | None:
        """Return the round of a step, and take its message; None where it has to wait."""
        times = self.ended[step.rank, step.lane][-1:]
        for lane, index in step.after:
            if len(self.ended[step.rank, lane]) <= index:
                return None
            times.append(self.ended[step.rank, lane][index])
        if step.receives:
            queue = self._queues[step.receives.peer, step.rank, step.receives.channel]
            if not queue:
                return None
            times.append(queue.popleft())
        return max(times, default=0)

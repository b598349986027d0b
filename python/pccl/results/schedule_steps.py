# SPDX-License-Identifier: Apache-2.0
"""Steps of a schedule, and the round of each step."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Dependency", "Port", "Step", "rounds_of"]


class Port(NamedTuple):
    """One end of a message queue between two ranks, relative to the rank that runs the step.

    Attributes
    ----------
    peer
        Rank at the other end.
    channel
        Number of the queue: there may be several between the two ranks.
    """

    peer: int
    channel: int


class Dependency(NamedTuple):
    """Steps of the same rank that must complete first.

    Attributes
    ----------
    lane
        Lane of that rank; its steps run in order.
    step
        Last step to wait for, counted from 0 in the lane.
    """

    lane: int
    step: int


class Step(NamedTuple):
    """Step of a rank's program. The steps of a lane run in order; lanes run concurrently.

    Attributes
    ----------
    rank, lane, step
        Position; ``step`` counts from 0 in its lane.
    action
        ``"send"``, ``"recv_reduce"``, ...; csrc/schedule/schedule.h lists all actions.
    text
        Full text: ``"recv_reduce input[3+1] -> output[3+1] from 2/0 after 1:4"``, with slices as
        chunk+number of chunks, ports as peer/channel, and dependencies as lane:step.
    receives, sends
        Port of the received and of the sent message; None without one.
    after
        Dependencies on other lanes of the rank.
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
        """Return the fields, with ports as peers."""
        fields = table.fields_of(self)
        for name in ("receives", "sends", "after"):
            del fields[name]
        return fields | {
            "receives_from": self.receives.peer if self.receives else None,
            "sends_to": self.sends.peer if self.sends else None,
        }


_Place: TypeAlias = tuple[int, int]  # rank, lane


def rounds_of(steps: Iterable[Step]) -> dict[Step, int]:
    """Return the round of each step; a message takes one round, other steps take none.

    Parameters
    ----------
    steps
        Steps of a schedule that ``verify`` accepts. Queues are assumed to be long enough.

    Raises
    ------
    ValueError
        A step waits for a message or a step that never comes.
    """
    lanes: dict[_Place, list[Step]] = collections.defaultdict(list)
    for step in steps:
        lanes[step.rank, step.lane].append(step)
    clock = _Clock()
    waiting = dict(lanes)
    while waiting:
        moved = [clock.advance(place, lane) for place, lane in waiting.items()]
        if not any(moved):
            raise ValueError("a step waits for data that no step sends")
        waiting = {place: lane for place, lane in waiting.items() if not clock.is_over(place, lane)}
    return {
        step: time
        for place, lane in lanes.items()
        for step, time in zip(lane, clock.ended[place], strict=True)
    }


class _Clock:
    """Rounds of the steps that have run so far, by lane."""

    def __init__(self) -> None:
        self.ended: dict[_Place, list[int]] = collections.defaultdict(list)
        # By sender, receiver and channel: arrival rounds of the messages that are not received yet.
        self._queues: dict[tuple[int, int, int], collections.deque[int]] = collections.defaultdict(
            collections.deque
        )

    def is_over(self, place: _Place, lane: list[Step]) -> bool:
        return len(self.ended[place]) == len(lane)

    def advance(self, place: _Place, lane: list[Step]) -> bool:
        """Run a lane until it must wait; return whether it ran any step."""
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
        """Return the round of a step, and consume its message; None where it must wait."""
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

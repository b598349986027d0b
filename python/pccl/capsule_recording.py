# SPDX-License-Identifier: Apache-2.0
"""Records calls of a capsule on ranks of either kind, and what looking costs."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pccl.bench.cases import time_calls
from pccl.bench.collectives import WARM_UP_CALLS
from pccl.errors import UnsupportedError

if TYPE_CHECKING:
    from pccl import timeline

__all__ = ["Recorded", "Recorder", "record_call"]

TURNS = 30
CALLS = 10  # of a turn
ROOM = 1 << 17


@dataclass(frozen=True)
class Recorded:
    """One call of a capsule.

    Attributes
    ----------
    timeline
        Of the median one of ten calls, with its simulation on this machine.
    us, recorded_us
        Microseconds of a call while nothing is recorded, and while steps are: of the slowest rank,
        medians of the best of ten.
    """

    timeline: timeline.Timeline
    us: float
    recorded_us: float

    @property
    def cost(self) -> float:
        """By how much of its time recording makes a call longer; less than 0 is noise."""
        return self.recorded_us / self.us - 1


class Recorder(Protocol):
    """A rank that calls a capsule."""

    rank: int

    def call(self) -> None:
        """Make one call; its result is there when this returns."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def slowest(self, times: list[float]) -> list[float]:
        """Return the greatest time of all ranks for each call."""

    def record(self, steps: int) -> None:
        """Begin to record; 0 ends it."""

    def gather(self) -> timeline.Timeline:
        """Return what all ranks have recorded, with nothing but the capsule's steps."""


def record_call(ranks: Recorder, name: str) -> Recorded:
    """Time calls with and without recording, then record some; all ranks call it.

    Parameters
    ----------
    ranks
        Of this rank.
    name
        The capsule's, for messages.

    Raises
    ------
    UnsupportedError
        Nothing of the calls was recorded.
    """
    time_calls(ranks.call, ranks.barrier, WARM_UP_CALLS)
    us, recorded_us = _cost(ranks)
    ranks.record(ROOM)
    time_calls(ranks.call, ranks.barrier, CALLS)
    found = ranks.gather()
    if not found.steps:
        raise UnsupportedError(
            f"no step of {name} was recorded: the devices do not run it (pccl.explain says why)"
        )
    return Recorded(_usual_call(found), us, recorded_us)


def _usual_call(found: timeline.Timeline) -> timeline.Timeline:
    """Return the call that took neither longest nor shortest, of those that are whole."""
    steps = Counter(step.call for step in found.steps)
    most = max(steps.values())
    calls = [found.of_call(call) for call, count in steps.items() if count == most]
    return sorted(calls, key=lambda call: call.seconds)[len(calls) // 2]


def _cost(ranks: Recorder) -> tuple[float, float]:
    """Return microseconds without and with recording, turn and turn about."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * TURNS):
        records = bool(turn % 2)
        ranks.record(ROOM if records else 0)
        times[records].append(min(ranks.slowest(time_calls(ranks.call, ranks.barrier, CALLS))))
    ranks.record(0)
    off, on = (statistics.median(times[records]) * 1e6 for records in (False, True))
    return off, on

# SPDX-License-Identifier: Apache-2.0
"""Recording of capsule calls on communicators or process groups, and its overhead."""

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
CALLS = 10  # per turn
ROOM = 1 << 17


@dataclass(frozen=True)
class Recorded:
    """One recorded call of a capsule.

    Attributes
    ----------
    timeline
        Timeline of the median one of ten calls, with its simulation on this machine.
    us, recorded_us
        Microseconds of a call on the slowest rank without recording, and with recording of steps:
        the median over turns of the best of ten calls.
    """

    timeline: timeline.Timeline
    us: float
    recorded_us: float

    @property
    def cost(self) -> float:
        """Relative overhead of recording: 0.1 is 10 %. Values below 0 are noise."""
        return self.recorded_us / self.us - 1


class Recorder(Protocol):
    """Interface of a rank that calls a capsule."""

    rank: int

    def call(self) -> None:
        """Make one call and wait for its result."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def slowest(self, times: list[float]) -> list[float]:
        """Return the maximum over ranks of the time of each call."""

    def record(self, steps: int) -> None:
        """Start recording up to ``steps`` steps; 0 stops it."""

    def gather(self) -> timeline.Timeline:
        """Return the recording of all ranks, with the steps of the capsule only."""


def record_call(ranks: Recorder, name: str) -> Recorded:
    """Time calls with and without recording, then record some calls; all ranks call it.

    Parameters
    ----------
    ranks
        Recorder of this rank.
    name
        Name of the capsule, for error messages.

    Raises
    ------
    UnsupportedError
        No step of the calls was recorded.
    """
    time_calls(ranks.call, ranks.barrier, WARM_UP_CALLS)
    us, recorded_us = _cost(ranks)
    ranks.record(ROOM)
    time_calls(ranks.call, ranks.barrier, CALLS)
    found = ranks.gather()
    if not found.steps:
        raise UnsupportedError(
            f"no step of {name} was recorded: the devices do not run it (pccl.explain gives the"
            " reason)"
        )
    return Recorded(_usual_call(found), us, recorded_us)


def _usual_call(found: timeline.Timeline) -> timeline.Timeline:
    """Return the call of median duration among the completely recorded calls."""
    steps = Counter(step.call for step in found.steps)
    most = max(steps.values())
    calls = [found.of_call(call) for call, count in steps.items() if count == most]
    return sorted(calls, key=lambda call: call.seconds)[len(calls) // 2]


def _cost(ranks: Recorder) -> tuple[float, float]:
    """Return microseconds per call without and with recording, measured in alternating turns."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * TURNS):
        records = bool(turn % 2)
        ranks.record(ROOM if records else 0)
        times[records].append(min(ranks.slowest(time_calls(ranks.call, ranks.barrier, CALLS))))
    ranks.record(0)
    off, on = (statistics.median(times[records]) * 1e6 for records in (False, True))
    return off, on

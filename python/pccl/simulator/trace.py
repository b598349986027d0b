# SPDX-License-Identifier: Apache-2.0
"""Simulated steps as events of the Chrome trace format for Perfetto; times are in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pccl.simulator.replay_steps import StepTime

__all__ = ["Event", "events_of_replay", "process_events", "simulated_events"]

Event = dict[str, Any]


def simulated_events(ranks: int, steps: Iterable[StepTime]) -> list[Event]:
    """Return the simulated events, in processes below those of the ranks."""
    played = sorted({step.rank for step in steps})
    stands_for = " (of all)" if len(played) < ranks else ""
    events = [
        event
        for rank in played
        for event in process_events(_simulated(rank), f"rank {rank}, simulated{stands_for}")
    ]
    return events + [
        event for step in steps for event in events_of_replay(step, _simulated(step.rank))
    ]


def events_of_replay(step: StepTime, process: int) -> Iterator[Event]:
    """Yield a step, and the arrival of its message."""
    place = {"pid": process, "tid": step.lane}
    yield place | {
        "ph": "X",
        "name": step.action,
        "ts": step.begin * 1e6,
        "dur": (step.done - step.begin) * 1e6,
        "args": {
            "step": step.index,
            "bytes": step.bytes,
            "to": step.receiver,
            "from": step.sender,
        },
    }
    if step.receiver >= 0:
        yield place | {
            "ph": "i",
            "name": f"to rank {step.receiver}",
            "s": "t",
            "ts": step.arrival * 1e6,
            "args": {"step": step.index},
        }


def process_events(number: int, name: str) -> list[Event]:
    """Return the events that name a process, and set its place among the others."""
    place = {"ph": "M", "pid": number}
    return [
        place | {"name": "process_name", "args": {"name": name}},
        place | {"name": "process_sort_index", "args": {"sort_index": number}},
    ]


def _simulated(rank: int) -> int:
    """Return the process number of the simulation, below the other two."""
    return 3 * rank + 2

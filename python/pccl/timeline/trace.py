# SPDX-License-Identifier: Apache-2.0
"""Measured steps as events of the Chrome trace format for Perfetto; times are in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.simulator.trace import Event, process_events

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pccl.timeline.steps import Hop, MeasuredStep

__all__ = ["measured_events"]


def measured_events(
    ranks: int, steps: Iterable[MeasuredStep], hops: Iterable[Hop], slowest: Hop | None
) -> list[Event]:
    """Return the measured events: processes of ranks, steps, and arrows for messages."""
    steps = list(steps)
    places = {(step.rank, step.is_on_gpu) for step in steps}
    places |= {(rank, False) for rank in range(ranks) if (rank, True) not in places}
    events = [
        event
        for rank, on_gpu in sorted(places)
        for event in process_events(
            _measured(rank, on_gpu), f"rank {rank}{', GPU' if on_gpu else ''}, measured"
        )
    ]
    events += [_bar(step, slowest) for step in steps]
    return events + [event for number, hop in enumerate(hops) for event in _arrow(number, hop)]


def _measured(rank: int, on_gpu: bool) -> int:
    """Return the process number of a rank, or of its GPU."""
    return 3 * rank + int(on_gpu)


def _bar(step: MeasuredStep, slowest: Hop | None) -> Event:
    is_slowest = slowest is not None and step in (slowest.sent, slowest.received)
    event = {
        "ph": "X",
        "pid": _measured(step.rank, step.is_on_gpu),
        "tid": step.lane,
        "name": f"{step.action} (slowest hop)" if is_slowest else step.action,
        "ts": step.begin * 1e6,
        "dur": (step.end - step.begin) * 1e6,
        "args": {
            "call": step.call,
            "window": step.window,
            "step": step.index,
            "bytes": step.bytes,
            "from": step.sender,
            "to": step.receiver,
            "waited_us": (step.moved - step.begin) * 1e6,
        },
    }
    return event | ({"cname": "terrible"} if is_slowest else {})


def _arrow(number: int, hop: Hop) -> list[Event]:
    common = {"cat": "message", "name": "message", "id": number}
    sent, received = hop.sent, hop.received
    return [
        common
        | {
            "ph": "s",
            "pid": _measured(sent.rank, sent.is_on_gpu),
            "tid": sent.lane,
            "ts": sent.moved * 1e6,
        },
        common
        | {
            "ph": "f",
            "bp": "e",
            "pid": _measured(received.rank, received.is_on_gpu),
            "tid": received.lane,
            "ts": received.end * 1e6,
        },
    ]

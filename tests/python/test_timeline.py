# SPDX-License-Identifier: Apache-2.0
"""Timelines as values: hops, the slowest of them, and clocks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pccl.results.table import Table
from pccl.timeline import Timeline
from pccl.timeline.ranks import offset_and_error
from pccl.timeline.steps import MeasuredStep, hops_of, slowest_of

if TYPE_CHECKING:
    from pathlib import Path


def step(
    rank: int,
    times: tuple[float, float, float],
    *,
    sender: int = -1,
    receiver: int = -1,
    on_gpu: bool = False,
) -> MeasuredStep:
    action = "recv_copy_send" if sender >= 0 <= receiver else "recv" if sender >= 0 else "send"
    return MeasuredStep(rank, 1, 0, 0, 0, action, sender, 0, receiver, 0, 64, on_gpu, *times)


def test_a_hop_takes_from_when_both_ends_are_at_it() -> None:
    late = step(1, (5, 5, 6), sender=0)
    (hop,) = hops_of([step(0, (0, 0, 1), receiver=1), late])
    assert (hop.begin, hop.seconds) == (5, 1)
    early = step(1, (0, 3, 4), sender=0)
    (hop,) = hops_of([step(0, (2, 2, 3), receiver=1), early])
    assert (hop.begin, hop.seconds) == (2, 2)


def test_messages_of_a_way_keep_their_order() -> None:
    sends = [step(0, (t, t, t + 1), receiver=1) for t in (0, 2)]
    receives = [step(1, (0, t + 1, t + 2), sender=0) for t in (0, 2)]
    back = [step(1, (5, 5, 6), receiver=0), step(0, (5, 6, 7), sender=1)]
    hops = hops_of([*sends, *receives, *back])
    assert [(hop.sent.rank, hop.sent.moved, hop.received.end) for hop in hops] == [
        (0, 0, 2),
        (0, 2, 4),
        (1, 5, 7),
    ]


def both_ways(*, on_gpu: bool, begin: float) -> list[MeasuredStep]:
    return [
        step(0, (begin, begin, begin + 1), receiver=1, on_gpu=on_gpu),
        step(1, (begin, begin, begin + 2), sender=0, on_gpu=on_gpu),
    ]


def test_steps_of_gpus_are_apart_from_those_of_links() -> None:
    steps = [*both_ways(on_gpu=False, begin=0), *both_ways(on_gpu=True, begin=10)]
    hops = hops_of(steps)
    assert [(hop.sent.is_on_gpu, hop.received.is_on_gpu) for hop in hops] == [
        (False, False),
        (True, True),
    ]
    found = Timeline("group", 2, Table(steps))
    assert [each.begin for each in found.of_call(-1).steps] == [0, 0]
    assert all(each.is_on_gpu for each in found.of_call(1).steps)
    assert not any(each.is_on_gpu for each in found.of_call(1, on_gpu=False).steps)


def test_a_trace_has_a_process_for_each_gpu(tmp_path: Path) -> None:
    steps = [*both_ways(on_gpu=True, begin=0), step(0, (0, 0, 1))]
    Timeline("group", 2, Table(steps)).save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    bars = {names[event["pid"]] for event in events if event["ph"] == "X"}
    assert bars == {"rank 0, measured", "rank 0, GPU, measured", "rank 1, GPU, measured"}
    arrows = [names[event["pid"]] for event in events if event["ph"] in "sf"]
    assert arrows == ["rank 0, GPU, measured", "rank 1, GPU, measured"]


def test_the_link_that_holds_all_others_up_is_blamed() -> None:
    """From 0 to 1 takes ten seconds; 1 passes bytes on to 2 while they come."""
    steps = [
        step(0, (0, 0, 9), receiver=1),
        step(1, (0, 0.5, 10), sender=0, receiver=2),
        step(2, (0, 0.6, 10.2), sender=1),
    ]
    slowest = slowest_of(hops_of(steps))
    assert slowest is not None
    assert (slowest.sent.rank, slowest.received.rank) == (0, 1)
    assert str(slowest) == "rank 0 to rank 1, 64 bytes in 10000000.0 us"
    assert slowest_of([]) is None


def test_the_quickest_ping_gives_the_offset() -> None:
    # The other clock is 1000 ahead; messages take 10 each way, but for one that is held up.
    quick = (0, 1010, 20)
    held_up = (100, 1190, 200)
    offset, error = offset_and_error([held_up, quick])
    assert offset == 1000
    assert error == 10
    lopsided, error = offset_and_error([(0, 1015, 20)])
    assert lopsided == pytest.approx(1000, abs=error)

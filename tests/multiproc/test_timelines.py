# SPDX-License-Identifier: Apache-2.0
"""Timelines that groups record: all steps, in order, on one clock."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from pccl import timeline
from support import algorithms
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.multiproc

RANKS = 3
RING = algorithms.ring.build("ring3", ranks=RANKS)
SECONDS_AHEAD = 1000


def recorded(
    folder: Path, *, count: int, room: int = 1 << 12, transports: str = ""
) -> timeline.Timeline:
    def body(comm: pccl.Communicator) -> timeline.Timeline:
        operator = comm.load(RING, "by name")
        x = np.ones(count)
        operator.run(x)  # nobody looks
        comm.record_timeline(room)
        operator.run(x)
        operator.run(x)
        found = timeline.gather(comm)
        assert x[0] == RANKS**3
        assert comm._take_timeline() == ([], 0, 0)
        return found

    all_found = run_threads(folder, RANKS, body, transports=transports)
    assert all_found == [all_found[0]] * RANKS
    return all_found[0]


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_every_step_of_each_call_is_there_once_and_in_order(
    tmp_path: Path, transports: str
) -> None:
    found = recorded(tmp_path, count=3072, transports=transports)
    planned = {(step.rank, step.lane, step.step): step for step in RING.schedule.steps}
    calls = {step.call for step in found.steps}
    assert len(calls) == 2
    seen = Counter((step.rank, step.lane, step.index) for step in found.steps)
    assert seen == Counter(dict.fromkeys(planned, 2))
    for step in found.steps:
        plan = planned[step.rank, step.lane, step.index]
        assert step.action == plan.action
        assert step.receiver == (plan.sends.peer if plan.sends else -1)
        assert step.sender == (plan.receives.peer if plan.receives else -1)
        assert step.bytes == 3072 * 8 // RANKS
        assert 0 <= step.begin <= step.moved <= step.end
    assert found.clock_error == 0
    assert found.lost == 0
    # Each rank sends each of 2(n-1) messages; nothing has arrived before it was sent.
    assert len(found.hops) == 2 * 2 * (RANKS - 1) * RANKS
    assert all(hop.received.end >= hop.sent.moved for hop in found.hops)


def test_large_data_has_the_steps_once_for_each_window(tmp_path: Path) -> None:
    found = recorded(tmp_path, count=1 << 18, transports="tcp").of_call(-1)
    windows = 1 + max(step.window for step in found.steps)
    assert windows > 1
    assert len(found.steps) == windows * len(RING.schedule.steps)
    assert sum(hop.sent.bytes for hop in found.hops) == 2 * (RANKS - 1) * (1 << 18) * 8
    assert min(step.begin for step in found.steps) == 0


def test_what_has_no_room_is_counted(tmp_path: Path) -> None:
    found = recorded(tmp_path, count=30, room=5)
    assert len(found.steps) == 5 * RANKS
    assert found.lost == 2 * len(RING.schedule.steps) - 5 * RANKS
    assert f"{found.lost} steps had no room" in repr(found)


def test_too_much_room_is_refused(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        with pytest.raises(pccl.InvalidArgumentError, match="at most 4194304 are recorded"):
            comm.record_timeline(1 << 40)

    run_threads(tmp_path, 1, body)


def test_the_trace_has_what_was_simulated_below_what_was_measured(tmp_path: Path) -> None:
    found = recorded(tmp_path, count=3000).of_call(-1)
    network = pccl.simulator.Network.machine(RANKS)
    with pytest.raises(ValueError, match="4 ranks were simulated, 3 measured"):
        found.beside(pccl.simulator.replay("ring", "all_reduce", network.machine(4), 24000))
    both = found.beside(RING.replay(network, 24000))
    both.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "process_name"
    }
    assert [names[process] for process in sorted(names)] == [
        f"rank {rank}, {how}" for rank in range(RANKS) for how in ("measured", "simulated")
    ]
    bars = Counter(names[event["pid"]].split(", ")[1] for event in events if event["ph"] == "X")
    steps = len(RING.schedule.steps)
    assert bars == {"measured": steps, "simulated": steps}
    arrows = [sorted(e["id"] for e in events if e["ph"] == end) for end in "sf"]
    assert arrows[0] == arrows[1] == list(range(len(both.hops)))
    assert sum("slowest hop" in event["name"] for event in events) == 2
    axes = both.plot().axes[0]
    assert "simulated below" in axes.get_title(loc="left")
    bars = sum(len(drawn.get_paths()) for drawn in axes.collections)
    assert bars == 3 * len(RING.schedule.steps)  # waited, moved, simulated


RANK = """
import sys
import numpy as np
import pccl
from pccl import timeline
comm = pccl.Communicator(
    rank=int(sys.argv[1]), world_size=2, rendezvous=f"file://{sys.argv[2]}/store", timeout=60
)
operator = comm.load(pccl.Capsule.load(f"{sys.argv[2]}/ring2.capsule"), "by name")
x = np.ones(1000)
operator.run(x)
comm.record_timeline()
operator.run(x)
found = timeline.gather(comm)
print(found.seconds, found.clock_error, len(found.steps))
comm.barrier()
"""


def test_the_clock_of_another_host_is_put_on_this_ones(tmp_path: Path) -> None:
    ahead = ["unshare", "--time", "--monotonic", str(SECONDS_AHEAD), "--fork"]
    if subprocess.run([*ahead, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel, or user, makes no time namespaces")
    algorithms.ring.build("ring2", ranks=2).save(tmp_path / "ring2.capsule")
    rank = [sys.executable, "-c", RANK]
    processes = [
        subprocess.Popen([*where, *rank, str(index), str(tmp_path)], stdout=subprocess.PIPE)
        for index, where in enumerate([[], ahead])
    ]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        seconds, error, steps = map(float, out.split())
        assert steps == len(algorithms.ring.build("ring2", ranks=2).schedule.steps)
        assert 0 < error < 1
        # Not a thousand seconds: no more than two hosts may be off, and a call takes.
        assert seconds < 10

# SPDX-License-Identifier: Apache-2.0
"""Replays, against closed forms and the tables of the literature worked out by brute force."""

from __future__ import annotations

import doctest
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import pccl
import pccl.lang as pl
from pccl import _core, simulator, topology
from pccl.published import reproductions
from support import algorithms
from support.switched_circuits import SWITCHED_IN_US, T1

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SPEED = simulator.Speed(2.0**33, 2.0**-18, 2.0**-20)
KIB, MIB = 1 << 10, 1 << 20


def step(nbytes: float) -> float:
    return SPEED.start + SPEED.hop + nbytes / SPEED.bandwidth


def test_a_capsule_takes_what_the_built_in_algorithm_takes() -> None:
    network = simulator.Network.switch(8, SPEED)
    built_in = simulator.replay("ring", "all_reduce", network, "8MB")
    capsule = algorithms.ring.build("mine", ranks=8).replay(network, "8MB")
    assert capsule.seconds == built_in.seconds == 14 * step(MIB)
    assert (capsule.rounds, capsule.messages, capsule.peak_chunks) == (
        built_in.rounds,
        built_in.messages,
        built_in.peak_chunks,
    )
    assert capsule.one_for_all
    assert built_in.one_for_all
    assert repr(built_in).startswith("ring: all_reduce of 8388608 bytes, 8 ranks, each like rank 0")


def test_steps_and_critical_path_are_rows() -> None:
    found = simulator.replay("binomial", "broadcast", simulator.Network.switch(8, SPEED), MIB)
    assert found.seconds == 3 * step(MIB)
    assert not found.one_for_all
    assert sum(each["receiver"] >= 0 for each in found.steps.rows) == 7
    path = found.critical_path
    assert path[0].begin == 0
    assert max(path[-1].done, path[-1].arrival) == found.seconds
    assert found.rows[0]["messages"] == 7


def test_hosts_share_their_links() -> None:
    across = simulator.Speed(SPEED.bandwidth / 4, SPEED.start, SPEED.hop)
    network = simulator.Network.hosts(8, 4, SPEED, across)
    found = simulator.replay("recursive_doubling", "all_reduce", network, MIB)
    far = SPEED.start + SPEED.hop + 4 * MIB / across.bandwidth
    assert found.seconds == 2 * step(MIB) + far
    assert found.busiest == "out of host 0"


def test_a_trace_has_every_step_and_message(tmp_path: Path) -> None:
    found = simulator.replay("binomial", "broadcast", simulator.Network.switch(4, SPEED), MIB)
    found.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(found.steps)
    arrivals = [event["ts"] for event in events if event["ph"] == "i"]
    assert len(arrivals) == 3
    assert max(arrivals) == pytest.approx(found.seconds * 1e6)
    assert {event["pid"] for event in events} == {0, 1, 2, 3}


def test_replays_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    for network in (
        simulator.Network.switch(8, SPEED),
        simulator.Network.hosts(8, 4, SPEED, SPEED),
    ):
        figure = simulator.replay("ring", "all_gather", network, MIB).plot()
        assert sum(len(drawn.get_paths()) for drawn in figure.axes[0].collections) > 0


def test_sixteen_thousand_ranks_take_little() -> None:
    """A ring with 268 million messages within 2 GB; what the process takes is all of it."""
    code = """
from pccl import simulator
speed = simulator.Speed(2.0**33, 2.0**-18, 2.0**-20)
network = simulator.Network.switch(16384, speed)
ring = simulator.replay("ring", "all_gather", network, 16384 << 10)
assert ring.messages == 16384 * 16383, ring
assert ring.seconds == 16383 * (2.0**-18 + 2.0**-20 + 2.0**-23), ring.seconds
pat = simulator.replay("pat", "all_gather", network, 16384 << 10, aggregation=64)
assert pat.messages == 16384 * 261, pat
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert after < max(before, 2_000_000)


def test_networks_and_sizes_are_checked() -> None:
    network = simulator.Network.switch(4, SPEED)
    with pytest.raises(ValueError, match="ranks is 1, must be 2 to 65536"):
        simulator.Network.switch(1, SPEED)
    with pytest.raises(ValueError, match="ports is 3"):
        simulator.Network.ring(4, SPEED, ports=3)
    with pytest.raises(ValueError, match="8 ranks do not divide into hosts of 3"):
        simulator.Network.hosts(8, 3, SPEED, SPEED)
    with pytest.raises(ValueError, match=r"bandwidth is 0\.0: give bytes a second above 0"):
        simulator.Speed(0.0)
    with pytest.raises(ValueError, match="no size"):
        simulator.replay("ring", "all_gather", network, "many")
    with pytest.raises(pccl.InvalidArgumentError, match="a network of 4 ranks is not for"):
        algorithms.ring.build("mine", ranks=8).replay(network)
    with pytest.raises(pccl.UnsupportedError, match="more than 4194304 steps"):
        simulator.replay(
            "ring", "all_gather", simulator.Network.hosts(4096, 8, SPEED, SPEED), "4MB"
        )


@pytest.mark.parametrize("name", reproductions.names())
def test_figures_of_papers_are_reproduced(name: str) -> None:
    found = reproductions.reproduce(name)
    assert found.claims
    for claim in found.claims:
        assert claim.simulated == pytest.approx(claim.published, rel=1e-9), claim
    assert found.paper in repr(found)


def test_the_example_of_the_module_runs() -> None:
    found = doctest.testmod(simulator, optionflags=doctest.ELLIPSIS)
    assert found == (0, 4)


def test_hosts_of_a_job_are_a_network_of_two_levels() -> None:
    node = topology.example("h200_vm")
    job = topology.Job.of([(f"host{i}", range(8 * i, 8 * i + 8), node) for i in range(2)])
    network = simulator.Network.of(job, within=SPEED)
    assert network.ranks == 16
    (link,) = job.links
    across = simulator.Speed(link.bandwidth * 1e9)
    same = simulator.Network.hosts(16, 8, SPEED, across)
    for algorithm in ("ring", "pat"):
        found = simulator.replay(algorithm, "all_gather", network, MIB)
        assert found.seconds == simulator.replay(algorithm, "all_gather", same, MIB).seconds
    # Without a speed, each rank's port is its GPU's part of a ring; then hosts' links are busiest.
    found = simulator.replay("ring", "all_gather", simulator.Network.of(job), MIB)
    assert "host" in found.busiest


def test_hosts_without_gpus_share_the_memory_of_this_machine() -> None:
    node = topology.example("h200_vm")
    job = topology.Job.of([("a", range(2), node), ("b", range(2, 4), node)])  # of 8 GPUs each
    found = simulator.replay("ring", "all_gather", simulator.Network.of(job), MIB)
    assert found.seconds > 0


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([("a", range(4))], "of one host"),
        ([("a", range(2)), ("b", range(2, 5))], "host b has ranks"),
        ([("a", (0, 2)), ("b", (1, 3))], "host a has ranks"),
    ],
)
def test_a_job_that_is_no_two_levels_is_refused(
    hosts: list[tuple[str, Sequence[int]]], message: str
) -> None:
    node = topology.example("h200_vm")
    job = topology.Job.of([(name, ranks, node) for name, ranks in hosts])
    with pytest.raises(ValueError, match=message):
        simulator.Network.of(job)


def test_there_is_no_other_reproduction() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="'other' is none of ring, pat, swing"):
        reproductions.reproduce("other")


def test_the_table_of_switched_circuits_to_its_digits() -> None:
    found = {claim.what: claim.simulated for claim in reproductions.reproduce("circuits").claims}
    for ranks, ports, nbytes, ring, halving, swing, switched in T1:
        size = f"{nbytes >> 10} KiB" if nbytes < MIB else f"{nbytes >> 20} MiB"
        row = f"{ranks} ranks, {ports} port{'s' * (ports - 1)}, {size}"
        assert round(found[f"{row}: ring"], 3) == ring
        if halving is not None and swing is not None:
            assert round(found[f"{row}: halving, forwarded"], 3) == halving
            assert round(found[f"{row}: Swing, forwarded"], 3) == swing
        for micros, printed in zip(SWITCHED_IN_US, switched, strict=True):
            what = f"{row}: halving, switched in {micros} us"
            if printed:
                assert (round(found[what], 3), found[f"{what}: how often"]) == printed


def test_the_table_of_rotating_circuits_to_its_digits() -> None:
    found = [claim.simulated for claim in reproductions.reproduce("rotation").claims]
    assert [round(ms, 1) for ms in found[:4]] == [2706.2, 85.0, 147.9, 1659.9]
    assert [round(found[4], 2), *(round(ms, 1) for ms in found[5:])] == [2.6, 41.6, 166.4]


def test_windows_follow_each_other_through_a_pipeline() -> None:
    """Through a chain of n ranks, w windows take n - 2 + w steps: the classic pipeline."""
    ranks, window = 5, MIB // 8
    network = simulator.Network.switch(ranks, SPEED, capacity=window)
    found = simulator.replay("ring", "broadcast", network, MIB)
    assert found.windows == 8
    assert found.seconds == pytest.approx((ranks - 2 + 8) * step(window))
    assert {each.window for each in found.steps} == set(range(8))
    assert {each.index for each in found.steps if each.rank == 1} == {0}
    assert found.bytes_sent == (ranks - 1) * MIB
    whole = simulator.replay("ring", "broadcast", simulator.Network.switch(ranks, SPEED), MIB)
    assert whole.seconds == (ranks - 1) * step(MIB)
    assert "8 windows" in repr(found)
    with pytest.raises(ValueError, match="capacity is -1"):
        simulator.Network.switch(ranks, SPEED, capacity=-1)


def machine(
    ranks: int,
    cores: int,
    *,
    takes_both: bool = False,
    sum_s: float = 0,
    run_s: float = 0,
    receipt_s: float = 0,
    take_s: float = 0,
    look_s: float = 0,
) -> Any:
    sending = (SPEED.start, SPEED.hop, 1 / SPEED.bandwidth, takes_both)
    work = (*sending, sum_s, run_s, receipt_s, take_s, look_s, 0)
    return simulator.Network(_core.one_machine(ranks, cores, work), "a machine")


@pytest.mark.parametrize(("cores", "times"), [(8, 1), (4, 2), (2, 4), (1, 8)])
def test_ranks_share_the_cores_of_a_machine(cores: int, times: int) -> None:
    """Eight messages at a time, as every round of a ring has them, take turns on fewer cores."""
    found = simulator.replay("ring", "all_gather", machine(8, cores), 8 * MIB)
    sent = SPEED.start + MIB / SPEED.bandwidth
    assert found.seconds == pytest.approx(7 * (times * sent + SPEED.hop))


def test_who_copies_what_it_gets_takes_turns_with_itself() -> None:
    once = simulator.replay("ring", "all_gather", machine(2, 2), 2 * MIB)
    both = simulator.replay("ring", "all_gather", machine(2, 2, takes_both=True), 2 * MIB)
    assert both.seconds - SPEED.hop == pytest.approx(2 * (once.seconds - SPEED.hop))


def test_sums_take_cores_too() -> None:
    byte = 4 / SPEED.bandwidth
    for cores, times in ((4, 1), (1, 4)):
        found = simulator.replay("ring", "reduce_scatter", machine(4, cores, sum_s=byte), 4 * MIB)
        sent = SPEED.start + MIB / SPEED.bandwidth
        rounds = 3 * (times * sent + SPEED.hop) + 3 * times * MIB * byte
        assert found.seconds == pytest.approx(rounds)


@pl.algorithm("gather")
def all_to_root(c: pl.Program) -> None:
    for rank in range(c.ranks):
        c.input(rank).copy_to(0)


def test_who_gets_many_messages_takes_them_one_by_one() -> None:
    """In its own time, while those who have sent them go on."""
    receipt, byte = SPEED.start * 2, 1 / SPEED.bandwidth / 2
    capsule = all_to_root.build(ranks=5)
    found = capsule.replay(machine(5, 5, receipt_s=receipt, take_s=byte), 5 * MIB)
    each = receipt + MIB * byte
    arrived = capsule.replay(machine(5, 5), 5 * MIB).seconds
    assert found.seconds == pytest.approx(arrived + 4 * each)


@pl.algorithm("broadcast", ranks=2, chunks=8)
def hand_over(c: pl.Program, each: int) -> None:
    """Hand each ``each``-th chunk over in one message."""
    for first in range(each):
        pl.join(*(c.input(0, i) for i in range(first, 8, each))).copy_to(1)
    for i in range(8):
        c.input(0, i).copy_to(0)


def test_each_run_of_a_message_takes_its_time_at_both_ends() -> None:
    """Eight chunks that adjoin are one run; a message of every second one of them has four."""
    run = SPEED.start / 4
    for each, runs in ((1, 1), (2, 4)):
        capsule = hand_over.build(each=each, ranks=2)
        found = capsule.replay(machine(2, 2, run_s=run), 64 * KIB)
        usual = capsule.replay(machine(2, 2), 64 * KIB).seconds
        # Messages follow each other; only the last is taken when no other is sent.
        more = (each + 1) * (runs - 1) * run
        assert found.seconds == pytest.approx(usual + more)


def test_a_lane_is_seen_after_a_look_for_what_a_later_one_waits_for() -> None:
    """PAT sends in its first lane what its second has received: 5 times of 6 between 8 ranks."""
    look = SPEED.start / 16
    for name, looks in (("pat", 5), ("recursive_halving", 0)):
        usual = simulator.replay(name, "all_reduce", machine(8, 8), 8 * KIB).seconds
        found = simulator.replay(name, "all_reduce", machine(8, 8, look_s=look), 8 * KIB).seconds
        assert found - usual == pytest.approx(looks * look)


def test_this_machine_has_measured_costs() -> None:
    network = simulator.Network.machine(4, transport="tcp", cores=2)
    few = simulator.replay("ring", "all_reduce", network, "4KB").seconds
    many = simulator.replay("ring", "all_reduce", network, "16MB")
    assert 0 < few < many.seconds
    assert many.windows > 1
    with pytest.raises(ValueError, match="cores is 0"):
        simulator.Network.machine(4, cores=0)

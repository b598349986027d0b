# SPDX-License-Identifier: Apache-2.0
"""Schedules that switch phases of the network: written, proven, played through, and run."""

from __future__ import annotations

import fcntl
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
import pccl.lang as pl
from pccl import phase_costs, published, simulator
from support.switched_circuits import MIB, SWITCHED_IN_US, T1

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANKS = 4


def apart(ranks: int, distance: int) -> dict[str, Any]:
    """Circuits both ways between ranks whose numbers differ in one binary digit."""
    links = [[rank, rank ^ distance] for rank in range(ranks) if rank < rank ^ distance]
    return {"links": links, "duplex": True}


PHASES: dict[str, Any] = {
    "ring": {"links": "ring"},
    "apart1": apart(RANKS, 1),
    "apart2": apart(RANKS, 2),
    **{
        f"turn{hop}": {"links": [[rank, (rank + hop) % RANKS] for rank in range(RANKS)]}
        for hop in range(1, RANKS)
    },
}


def run(body: Callable[..., Any], *args: object) -> list[Any]:
    cluster = pccl.Cluster({"devices": [{}] * RANKS, "phases": PHASES})
    results: list[Any] = pccl.run(body, *args, ranks=RANKS, cluster=cluster, timeout=120)
    return results


def halving() -> pccl.Capsule:
    return published.switched_halving.build(ranks=RANKS)


@pl.algorithm("all_to_all")
def rotation(c: pl.Program) -> None:
    """Each rank gives a block to that which is so many further, with circuits for it."""
    for rank in range(c.ranks):
        c.input(rank, rank).copy_to(rank)
    for hop in range(1, c.ranks):
        c.switch_phase(f"turn{hop}")
        for rank in range(c.ranks):
            c.input(rank, (rank + hop) % c.ranks).copy_to((rank + hop) % c.ranks)


# Rabenseifner 2004: 2 lg p rounds; 2 (p - 1) / p of the buffer sent by each rank.
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_halving_and_doubling_has_its_rounds_and_bytes(ranks: int) -> None:
    capsule = published.switched_halving.build(ranks=ranks)
    levels = ranks.bit_length() - 1
    assert len(capsule.phases) == 2 * levels - 1
    rounds, messages, sent, _ = capsule._core.cost(ranks * 100)
    assert (rounds, messages, sent) == (2 * levels, 2 * levels, 2 * (ranks - 1) * 100)


def test_what_a_capsule_switches_is_in_its_file(tmp_path: Path) -> None:
    capsule = halving()
    assert capsule.phases == ("apart2", "apart1", "apart2")
    capsule.save(tmp_path / "halving.capsule")
    read = pccl.Capsule.load(tmp_path / "halving.capsule")
    assert read == capsule
    assert read.phases == capsule.phases
    assert read.manifest["phases"] == ["apart2", "apart1", "apart2"]
    assert read.schedule == capsule.schedule
    other = capsule.data.replace(b'"apart2"', b'"apart9"')
    with pytest.raises(pccl.InvalidArgumentError, match="digest"):
        pccl.Capsule.parse(other)
    assert "phases" not in pl.from_generator("ring", "all_reduce", 4).manifest


# The table was worked out beforehand by brute force over every link; where each step has circuits
# of its own, that is this program.
@pytest.mark.parametrize(("ranks", "nbytes"), [(64, 16 * MIB), (128, 64 << 10), (128, MIB)])
def test_the_replay_takes_as_long_as_in_the_table(ranks: int, nbytes: int) -> None:
    speed = simulator.Speed(12.5e9, 5e-6, 1e-6)
    capsule = published.switched_halving.build(ranks=ranks)
    network = simulator.Network.switch(ranks, speed)
    (row,) = (row for row in T1 if row[:3] == (ranks, 1, nbytes))
    seen = 0
    for micros, printed in zip(SWITCHED_IN_US, row[6], strict=True):
        if printed is None or printed[1] != len(capsule.phases):
            continue  # some steps are better forwarded
        ms, switches = printed
        found = capsule.replay(
            dict.fromkeys(capsule.phases, network), nbytes, reconfiguration=micros * 1e-6
        )
        assert round(found.seconds * 1e3, 3) == ms
        assert found.switches == switches
        seen += 1
    assert seen > 0


def test_the_replay_of_a_rotation_takes_as_long_as_the_formula() -> None:
    ranks, nbytes = 16, MIB
    capsule = rotation.build(ranks=ranks)
    network = simulator.Network.switch(ranks, simulator.Speed(12.5e9, 5e-6, 1e-6))
    networks = dict.fromkeys(["", *capsule.phases], network)
    found = capsule.replay(networks, nbytes, reconfiguration=25e-3)
    on = phase_costs.Circuits(ranks, 12.5e9)
    assert found.seconds == pytest.approx(phase_costs.all_to_all_rotating(on, nbytes, 25e-3))
    assert [part.phase for part in found.parts] == ["", *capsule.phases]
    assert "15 switches of 25 ms" in repr(found)
    with pytest.raises(pccl.InvalidArgumentError, match="no network for phase 'turn1'"):
        capsule.replay(network, nbytes)


def error_of(algorithm: pl.Algorithm) -> str:
    with pytest.raises(pl.ProgramError) as error:
        algorithm.build()
    return str(error.value)


def test_scratch_does_not_outlive_a_switch() -> None:
    @pl.algorithm("all_gather", ranks=2)
    def kept(c: pl.Program) -> None:
        for rank in range(2):
            c.input(rank).copy_to(rank)
            c.input(rank).copy_to(c.scratch(1 - rank))
        c.switch_phase("ring")
        for rank in range(2):
            c.scratch(rank).copy_to(c.output(rank, 1 - rank))  # blamed

    reported = error_of(kept)
    assert "scratch does not outlive a switch" in reported
    assert "c.output(rank, 1 - rank))  # blamed" in reported


def test_lanes_wait_for_each_other_at_a_switch() -> None:
    """One lane of rank 0 sends what another has summed up, and says nothing of waiting for it."""
    whole, total = pl.Slice("input", 0), pl.Slice("output", 0)

    def steps(*, switches: bool) -> pl.Steps:
        made = pl.Steps("all_reduce", ranks=2)
        made.lane(1).send(whole, 0)
        made.lane(0).recv_reduce(1, total, src=whole)
        if switches:
            made.switch_phase("ring")
        made.lane(0, channel=1).send(total, 1)
        made.lane(1, channel=1).recv(0, total)
        return made

    with pytest.raises(pl.ProgramError, match="in no order"):
        steps(switches=False).build("unordered")
    capsule = steps(switches=True).build("ordered")
    assert capsule.phases == ("ring",)
    assert capsule.manifest["rounds"] == 2


def test_no_message_crosses_a_switch() -> None:
    made = pl.Steps("broadcast", ranks=2)
    sends, receives = made.lane(0), made.lane(1)
    sends.send(pl.Slice("input", 0), 1)
    made.switch_phase("ring")
    receives.recv(0, pl.Slice("output", 0))  # blamed
    with pytest.raises(pl.ProgramError, match="no message crosses a switch") as error:
        made.build("crossing")
    assert "# blamed" in str(error.value)


@pytest.mark.parametrize("name", ["", "two words", "a" * 65, "é", 3])
def test_names_of_phases_are_checked_where_they_are_given(name: Any) -> None:
    made = pl.Steps("broadcast", ranks=2)
    with pytest.raises(pl.ProgramError, match="is no name of a phase") as error:
        made.switch_phase(name)  # here
    assert "test_switched_schedules.py" in str(error.value)


def test_parts_of_a_composed_algorithm_switch_nothing() -> None:
    @pl.algorithm("all_reduce")
    def switching(c: pl.Program) -> None:
        c.switch_phase("ring")

    @pl.algorithm("all_gather")
    def spread(c: pl.Program) -> None:
        for source in range(c.ranks):
            for rank in range(c.ranks):
                c.input(source).copy_to(rank)

    @pl.algorithm("reduce_scatter")
    def sums(c: pl.Program) -> None:
        for owner in range(c.ranks):
            for rank in range(c.ranks):
                if rank != owner:
                    c.input(rank, chunk=owner).reduce_to(owner)

    whole = pl.compose(inside=(sums, spread), across=switching, ranks_per_host=2)
    with pytest.raises(pl.ProgramError, match="composed algorithm cannot switch to phase ring"):
        whole.build("whole", ranks=4)


@pytest.mark.parametrize("transports", ["shm,tcp", "tcp"])
def test_an_all_reduce_switches_between_its_steps(
    transports: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PCCL_TRANSPORTS", transports)

    def body(comm: pccl.Communicator, capsule: pccl.Capsule) -> list[Any]:
        operator = comm.load(capsule)
        pccl.switch_phase("ring")
        seen: list[Any] = [repr(operator), [each.name for each in comm.capsules()]]
        for elements in [1, 5, 1000, 300_000]:  # more than a link holds at a time
            x = np.arange(elements, dtype=np.float64) * (comm.rank + 1)
            out = np.empty_like(x)
            operator.run(x, out)
            in_place = x.copy()
            operator.run(in_place, op="max")
            base = np.arange(elements) * 10.0
            assert out.tolist() == base.tolist()
            assert in_place.tolist() == (np.arange(elements) * 4.0).tolist()
            seen.append(pccl.phases.current_phase())
        shifted = np.arange(1001.0)
        operator.run(shifted[:-1], shifted[1:])
        assert shifted[1:].tolist() == (np.arange(1000.0) * 4).tolist()
        pccl.switch_phase("ring")
        x = np.ones(10)
        comm.all_reduce(x)  # the group's own way, as before
        comm.unload("switched_halving")
        return [*seen, x[0]]

    for seen in run(body, halving()):
        reported, loaded, *rest = seen
        assert reported == (
            "<pccl.SwitchedOperator switched_halving: all_reduce, apart2, apart1, apart2>"
        )
        assert loaded == ["switched_halving"]
        assert rest == ["apart2"] * 4 + [4.0]


def test_an_all_to_all_over_circuits_that_rotate() -> None:
    def body(comm: pccl.Communicator, capsule: pccl.Capsule) -> list[float]:
        out = np.empty(RANKS * 3)
        comm.load(capsule).run(np.repeat(np.arange(4.0) + 10 * comm.rank, 3), out)
        return out.tolist()

    got = run(body, rotation.build(ranks=RANKS))
    for rank, blocks in enumerate(got):
        assert blocks == np.repeat(np.arange(4) * 10.0 + rank, 3).tolist()


def refusal(comm: pccl.Communicator, make: Callable[[], object]) -> str:
    try:
        make()
    except pccl.Error as error:
        return f"{type(error).__name__}: {error}"
    return ""


def named(phase: str) -> pccl.Capsule:
    """An all_reduce of which all that is sent is sent in one phase."""

    @pl.algorithm("all_reduce", ranks=RANKS)
    def one_phase(c: pl.Program) -> None:
        c.switch_phase(phase)
        x = c.input(0)
        for rank in range(1, c.ranks):
            x = x.reduce_to(rank)
        for _ in range(c.ranks - 1):
            x = x.copy_to((x.rank + 1) % c.ranks)

    return one_phase.build()


def test_what_cannot_run_is_refused_on_all_ranks_in_one_line() -> None:
    def body(comm: pccl.Communicator, capsules: list[pccl.Capsule]) -> list[str]:
        unknown, dark, fine = capsules
        half = comm.split(comm.rank // 2)
        whole = comm.split(0)
        assert half is not None
        assert whole is not None
        operator = comm.load(fine)
        x = np.ones(8, np.float16)
        return [
            refusal(comm, lambda: comm.load(unknown)),
            refusal(comm, lambda: comm.load(dark)),
            refusal(comm, lambda: whole.load(fine)),
            refusal(comm, lambda: operator.run(x)),
            refusal(comm, lambda: operator.run(np.ones(8), op="avg")),
            refusal(comm, lambda: operator.execute(np.ones(8))),
            refusal(comm, lambda: comm.load(fine)),
        ]

    capsules = [named("rings"), named("apart1"), halving()]
    for reported in run(body, capsules):
        assert all("\n" not in line for line in reported)
        assert "there is no phase rings; there are apart1, apart2, ring, turn1" in reported[0]
        assert "rank 1 sends to rank 2 in phase apart1, which has no link for that" in reported[1]
        assert "this group follows those of the group of all ranks: load it there" in reported[2]
        assert "makes no averages and adds no halves" in reported[3]
        assert "makes no averages and adds no halves" in reported[4]
        assert "switched_halving switches phases, for which all ranks wait: run() it" in reported[5]
        assert "already with the name switched_halving" in reported[6]


def test_a_group_in_a_phase_loads_what_its_links_carry() -> None:
    def body(comm: pccl.Communicator, capsules: list[pccl.Capsule]) -> list[str]:
        ring, tree = capsules
        reported = [refusal(comm, lambda: comm.load(tree))]  # no phase yet
        comm.unload("tree")
        pccl.switch_phase("ring")
        reported += [refusal(comm, lambda: comm.load(tree)), refusal(comm, lambda: comm.load(ring))]
        x = np.ones(1 << 12)
        comm.all_reduce(x)
        return [*reported, *(each.name for each in comm.capsules()), str(x[0])]

    capsules = [
        pl.from_generator("ring", "all_reduce", RANKS, name="circle"),
        pl.from_generator("binomial", "reduce", RANKS, name="tree"),
    ]
    for early, refused, loaded, *rest in run(body, capsules):
        assert early == loaded == ""
        assert "rank 1 sends to rank 0 in phase ring, which has no link for that" in refused
        assert "load the capsule in a phase that has it" in refused
        assert "\n" not in refused
        assert rest == ["circle", "4.0"]


def test_a_group_on_no_cluster_is_refused() -> None:
    def body(comm: pccl.Communicator, capsule: pccl.Capsule) -> str:
        return refusal(comm, lambda: comm.load(capsule))

    for reported in pccl.run(body, halving(), ranks=RANKS, timeout=60):
        assert re.match(r"UnsupportedError: .*this group is on no cluster: give it one", reported)


def test_a_switch_that_fails_leaves_the_group_as_it_was(tmp_path: Path) -> None:
    """All ranks raise the same, and go on in the phase before."""
    audit = tmp_path / "audit.jsonl"

    def body(comm: pccl.Communicator, capsule: pccl.Capsule) -> list[Any]:
        operator = comm.load(capsule)
        pccl.switch_phase("ring")
        x = np.ones(4)
        with audit.open() as file:
            if comm.rank == 0:  # it begins nothing that it cannot write down
                fcntl.flock(file, fcntl.LOCK_EX)
            reported = refusal(comm, lambda: operator.run(x))
        y = np.ones(4)
        comm.all_reduce(y)
        return [reported, pccl.phases.current_phase(), y[0]]

    cluster = pccl.Cluster({"devices": [{}] * RANKS, "phases": PHASES, "audit": str(audit)})
    for reported, phase, total in pccl.run(
        body, halving(), ranks=RANKS, cluster=cluster, timeout=120
    ):
        assert "another process has it locked" in reported
        assert (phase, total) == ("ring", 4.0)

# SPDX-License-Identifier: Apache-2.0
"""Capsules with programs for several numbers of ranks: what makes them, and what they say."""

from __future__ import annotations

import inspect
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import pccl
import pccl.lang as pl
from pccl import simulator, topology
from pccl.cli import program_files
from support import algorithms

if TYPE_CHECKING:
    from pathlib import Path

PORT = simulator.Speed(bandwidth=12.5e9, start=5e-6, hop=1e-6)


@pl.algorithm("all_reduce", ranks=range(2, 6))
def chain(c: pl.Program) -> None:
    x = c.input(0)
    for rank in range(1, c.ranks):
        x = x.reduce_to(rank)
    for rank in range(c.ranks - 1):
        x.copy_to(rank)


@pl.algorithm("all_reduce", ranks=[3, 4, 2])
def wrong_from_4_on(c: pl.Program) -> None:
    x = c.input(0)
    for rank in range(1, c.ranks):
        x = x.reduce_to(rank)
    if c.ranks == 4:
        x = x.reduce_to(1)  # again
    for rank in range(c.ranks):
        if rank != x.rank:
            x.copy_to(rank)


@pytest.mark.parametrize("ranks", [range(2, 6), [5, 3, 2, 4], iter((2, 3, 4, 5))])
def test_one_capsule_has_the_programs_for_several_numbers_of_ranks(ranks: Any) -> None:
    capsule = algorithms.ring.build("ring", ranks=ranks, sizes="1MB..", author="Ada")
    assert capsule.ranks == (2, 3, 4, 5)
    assert capsule.manifest == {
        "name": "ring",
        "collective": "all_reduce",
        "ranks": "2..5",
        "root": 0,
        "sizes": "1MB..",
        "author": "Ada",
        "licence": "",
        "note": "",
    }
    for number in capsule.ranks:
        alone = algorithms.ring.build("ring", ranks=number, sizes="1MB..", author="Ada")
        assert capsule.for_ranks(number) == alone
    assert repr(capsule).startswith("<pccl.Capsule ring: all_reduce, 2..5 ranks, sizes 1MB..")


def test_the_decorator_takes_numbers_of_ranks(tmp_path: Path) -> None:
    capsule = chain.build()
    assert capsule.ranks == (2, 3, 4, 5)
    assert capsule.name == "chain"
    assert chain.build(ranks=3) == capsule.for_ranks(3)
    assert chain.build(ranks=[2, 4]).manifest["ranks"] == "2 4"
    assert repr(chain) == "<pccl.lang algorithm chain: all_reduce, 2..5 ranks>"
    with pytest.raises(pccl.InvalidArgumentError, match=r"chain is for 2\.\.5 ranks, not 6"):
        chain.build(ranks=6)
    with pytest.raises(pccl.InvalidArgumentError, match=r"chain is for 2\.\.5 ranks, not 6"):
        chain.build(ranks=range(4, 8))


def test_built_in_and_composed_algorithms_are_built_so_too() -> None:
    spread = pl.from_generator("pat", "all_gather")
    assert spread.build("spread", ranks=[2, 4, 8]).ranks == (2, 4, 8)
    whole = pl.compose(
        inside=(algorithms.ring_reduce_scatter, spread), across=algorithms.ring, ranks_per_host=2
    )
    capsule = whole.build("two_levels", ranks=range(4, 9, 2), instances=2)
    assert capsule.ranks == (4, 6, 8)
    assert capsule.for_ranks(6) == whole.build("two_levels", ranks=6, instances=2)


def test_a_list_of_one_number_makes_the_capsule_of_that_number() -> None:
    alone = algorithms.ring.build("ring", ranks=4)
    assert algorithms.ring.build("ring", ranks=[4]) == alone
    assert pccl.Capsule.join([alone]) == alone
    assert alone.for_ranks(4) == alone
    assert alone.ranks == (4,)
    assert alone.manifest["ranks"] == 4


def test_files_come_back_equal(tmp_path: Path) -> None:
    capsule = algorithms.ring.build("ring", ranks=[2, 3, 8])
    capsule.save(tmp_path / "ring.capsule")
    read = pccl.Capsule.load(tmp_path / "ring.capsule")
    assert read == capsule
    assert read.digest == capsule.digest
    assert read.manifest == capsule.manifest
    assert pickle.loads(pickle.dumps(capsule)) == capsule
    assert program_files.program_in(tmp_path / "ring.capsule") == capsule


def test_capsules_of_several_files_are_joined() -> None:
    two, three, four = (algorithms.ring.build("ring", ranks=ranks) for ranks in (2, 3, 4))
    whole = pccl.Capsule.join([three, pccl.Capsule.join([four, two])])
    assert whole == algorithms.ring.build("ring", ranks=range(2, 5))
    with pytest.raises(pccl.InvalidArgumentError, match="capsule for 2 ranks follows one for 2"):
        pccl.Capsule.join([whole, two])
    other = algorithms.all_pairs.build("all_pairs", ranks=5)
    with pytest.raises(pccl.InvalidArgumentError, match=r'for 2 and 5 ranks .* at "name"'):
        pccl.Capsule.join([two, other])
    with pytest.raises(pccl.InvalidArgumentError, match="at least"):
        pccl.Capsule.join([])


def test_attributes_of_one_program_need_a_number_of_ranks(tmp_path: Path) -> None:
    capsule = algorithms.ring.build("ring", ranks=[2, 3, 4, 8])
    several = r"capsule ring is for 2\.\.4 8 ranks"
    for ask in (
        lambda: capsule.schedule,
        lambda: capsule.phases,
        capsule.to_msccl,
        capsule.plot,
        capsule.simulate,
    ):
        with pytest.raises(pccl.InvalidArgumentError, match=several) as error:
            ask()
        assert "for_ranks(2)" in str(error.value)
    with pytest.raises(pccl.InvalidArgumentError, match=several + ", not for 5"):
        capsule.for_ranks(5)
    alone = pccl.Capsule.of(pccl.schedule.generate("ring", "all_reduce", 4).renamed("mine"))
    with pytest.raises(pccl.InvalidArgumentError, match="is for 4 ranks, not for 3"):
        alone.for_ranks(3)
    table = capsule._repr_html_()
    assert table.count("<tr>") == 5
    assert "+1" in table


def test_networks_and_jobs_take_the_program_of_their_ranks() -> None:
    capsule = algorithms.ring.build("mine", ranks=range(2, 6))
    for ranks in (2, 5):
        network = simulator.Network.switch(ranks, PORT)
        alone = capsule.for_ranks(ranks)
        assert capsule.replay(network, "1MB").seconds == alone.replay(network, "1MB").seconds
        job = topology.Job.of([("host", range(ranks), topology.example("h200_vm"))])
        assert capsule.simulate(job, "1MB").rows == alone.simulate(job, "1MB").rows
    with pytest.raises(pccl.InvalidArgumentError, match=r"is for 2\.\.5 ranks, not for 7"):
        capsule.replay(simulator.Network.switch(7, PORT), "1MB")


def test_mistakes_name_the_number_of_ranks_and_the_line() -> None:
    with pytest.raises(pl.ProgramError) as error:
        wrong_from_4_on.build()
    source = inspect.getsource(inspect.getmodule(chain.function))  # type: ignore[arg-type]
    again = next(i for i, line in enumerate(source.splitlines(), 1) if line.endswith("  # again"))
    assert error.value.line == (__file__, again)
    first_line, what = str(error.value).splitlines()[:2]
    assert first_line.startswith(f"test_capsule_ranks.py:{again}: ")
    assert what.startswith("  for 4 ranks: rank ")
    assert error.value.conflict is not None
    assert error.value.conflict.schedule.ranks == 4
    assert wrong_from_4_on.build(ranks=[2, 3]).ranks == (2, 3)


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ([], "names none"),
        (itertools.count(2), "names too many"),
        (range(2, 10**9), "names too many"),
        ([0, 2], "names 0"),
        ([2, "3"], "names '3'"),
        ([4, 2, 4], "twice"),
    ],
)
def test_numbers_of_ranks_that_are_none_are_refused(ranks: Any, why: str) -> None:
    for build in (
        lambda: algorithms.ring.build("ring", ranks=ranks),
        lambda: pl.algorithm("all_reduce", ranks=ranks),
    ):
        with pytest.raises(pccl.InvalidArgumentError, match=why) as error:
            build()
        assert "\n" not in str(error.value)


def test_a_damaged_program_is_drawn_for_its_number_of_ranks(tmp_path: Path) -> None:
    capsule = algorithms.all_pairs.build("all_pairs", ranks=[2, 3])
    file = tmp_path / "damaged.capsule"
    file.write_bytes(capsule.data[:-1] + b"x")
    with pytest.raises(pccl.InvalidArgumentError, match="its digest is not that"):
        program_files.program_in(file)
    assert program_files.drawn_conflict(file, "its digest is not that of its bytes") is None
    capsule.save(file)
    conflict = f"{file}: for 3 ranks: rank 2 lane 0 step 0 (send): wrong"
    assert program_files.drawn_conflict(file, conflict) is not None
    with pytest.raises(pccl.InvalidArgumentError, match="no programs for 5 ranks"):
        program_files.drawn_conflict(file, conflict.replace("3 ranks", "5 ranks"))

# SPDX-License-Identifier: Apache-2.0
"""Algorithms composed of one inside hosts and one across: proven, and as frugal as they promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest

import pccl
import pccl.lang as pl
from pccl.lang.geometry import ROOTED, Collective
from support import algorithms
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path


@pl.algorithm("all_gather", chunks=3)
def ring_all_gather(c: pl.Program) -> None:
    for rank in range(c.ranks):
        x = c.input(rank, count=c.chunks)
        x.copy_to(rank)
        for hop in range(1, c.ranks):
            x = x.copy_to((rank + hop) % c.ranks)


@pl.algorithm("reduce", root=0)
def star_to_0(c: pl.Program) -> None:
    for rank in range(1, c.ranks):
        c.input(rank).reduce_to(0)


CHAIN = algorithms.chain_broadcast  # from rank 1
SCATTER = algorithms.ring_reduce_scatter
COMPOSED = {
    "all_reduce": {"inside": (SCATTER, ring_all_gather), "across": algorithms.ring},
    "all_gather": {"inside": ring_all_gather, "across": ring_all_gather},
    "reduce_scatter": {"inside": SCATTER, "across": SCATTER},
    "broadcast": {"inside": CHAIN, "across": CHAIN},
    "reduce": {"inside": star_to_0, "across": algorithms.star_reduce},
}
SHAPES = [(2, 2), (2, 3), (3, 2), (4, 4)]


def composed(collective: str, hosts: int, each: int) -> pccl.Capsule:
    algorithm = pl.compose(**COMPOSED[collective], ranks_per_host=each)  # type: ignore[arg-type]
    return algorithm.build("composed", ranks=hosts * each)


@pytest.mark.parametrize(("hosts", "each"), SHAPES)
@pytest.mark.parametrize("collective", COMPOSED)
def test_the_whole_is_proven_and_no_byte_leaves_a_host_twice(
    collective: str, hosts: int, each: int
) -> None:
    capsule = composed(collective, hosts, each)
    ranks = hosts * each
    assert capsule.manifest["collective"] == collective
    speed = pccl.simulator.Speed(1e9)
    nbytes = ranks * 3 * 1024
    found = capsule.replay(pccl.simulator.Network.hosts(ranks, each, speed, speed), nbytes)
    leaves = sum(
        step.bytes
        for step in found.steps
        if step.receiver >= 0 and step.receiver // each != step.rank // each
    )
    share = (hosts - 1) / hosts
    # Least volumes of rings (Patarasu and Yuan, 2009) and trees over all hosts together.
    least = {
        "all_reduce": 2 * share * hosts,
        "all_gather": share * hosts,
        "reduce_scatter": share * hosts,
        "broadcast": hosts - 1,
        "reduce": hosts - 1,
    }[collective]
    assert leaves == pytest.approx(least * nbytes)


def data_of(rank: int, count: int) -> np.ndarray[Any, Any]:
    return (np.arange(count) * 7 + rank * 1000).astype(np.int64)


@pytest.mark.multiproc
def test_ranks_run_it(tmp_path: Path) -> None:
    """Root is rank 1 of host 1, so rank 3."""
    count = 1000
    capsules = {name: composed(name, 2, 2) for name in COMPOSED}

    def body(comm: pccl.Communicator) -> bool:
        def run(collective: str, x: Any, out: Any = None) -> Any:
            operator = comm.load(capsules[collective], "by name")
            operator.run(x, out)
            comm.unload("composed")
            return x if out is None else out

        inputs = [data_of(rank, 4 * count) for rank in range(4)]
        own, total = inputs[comm.rank].copy(), sum(inputs)
        blocks = np.reshape(total, (4, count))
        right = [
            np.array_equal(run("all_reduce", own.copy()), total),
            np.array_equal(run("broadcast", own.copy()), inputs[3]),
            np.array_equal(
                run("all_gather", own, np.zeros(16 * count, np.int64)), np.concatenate(inputs)
            ),
            np.array_equal(
                run("reduce_scatter", own, np.zeros(count, np.int64)), blocks[comm.rank]
            ),
        ]
        root = capsules["reduce"].schedule.root
        summed = run("reduce", own.copy())
        return all(right) and (comm.rank != root or np.array_equal(summed, total))

    assert run_threads(tmp_path, 4, body) == [True] * 4


def test_a_mistake_in_a_part_is_an_error_at_its_line() -> None:
    @pl.algorithm("all_reduce")
    def forgets_one(c: pl.Program) -> None:
        total = c.input(0).copy_to(0)
        for rank in range(1, c.ranks):
            total.copy_to(rank)

    whole = pl.compose(inside=(SCATTER, ring_all_gather), across=forgets_one, ranks_per_host=2)
    with pytest.raises(pl.ProgramError, match=r"test_compose\.py:\d+: ") as error:
        whole.build("broken", ranks=4)
    assert "missing" in str(error.value) or "lacks" in str(error.value)


BUILT_IN: dict[str, dict[str, Any]] = {
    "all_reduce": {
        "inside": (
            pl.from_generator("recursive_halving", "reduce_scatter"),
            pl.from_generator("pat", "all_gather"),
        ),
        "across": pl.from_generator("recursive_doubling", "all_reduce"),
    },
    "all_gather": {
        "inside": pl.from_generator("pat", "all_gather"),
        "across": pl.from_generator("ring", "all_gather"),
    },
    "reduce_scatter": {
        "inside": pl.from_generator("ring", "reduce_scatter"),
        "across": pl.from_generator("pat", "reduce_scatter"),
    },
    "broadcast": {
        "inside": pl.from_generator("binomial", "broadcast", root=1),
        "across": CHAIN,
    },
}


@pytest.mark.parametrize(("hosts", "each"), SHAPES)
@pytest.mark.parametrize("collective", BUILT_IN)
def test_built_in_ones_are_composed(collective: str, hosts: int, each: int) -> None:
    whole = pl.compose(**BUILT_IN[collective], ranks_per_host=each)
    capsule = whole.build("composed", ranks=hosts * each)
    assert capsule.manifest["collective"] == collective
    assert capsule.schedule.ranks == hosts * each


BUILT_IN_WAYS = [
    (collective, algorithm)
    for collective in get_args(Collective)
    for algorithm in pccl.schedule.algorithms(collective)
]


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 8])
@pytest.mark.parametrize(("collective", "algorithm"), BUILT_IN_WAYS)
def test_steps_of_a_built_in_algorithm_are_in_chunks(
    collective: Any, algorithm: str, ranks: int
) -> None:
    """It is proven anew, and no rank sends more than by the steps it was made of."""
    root = ranks - 1 if collective in ROOTED else 0
    of_steps = pl.from_generator(algorithm, collective, ranks, root=root)
    of_chunks = pl.from_generator(algorithm, collective, root=root).build("mine", ranks=ranks)
    network = pccl.simulator.Network.switch(ranks, pccl.simulator.Speed(1e9))
    nbytes = of_steps.schedule.chunks * ranks * 64
    found, expected = of_chunks.replay(network, nbytes), of_steps.replay(network, nbytes)
    assert found.bytes_sent == expected.bytes_sent
    assert found.messages == expected.messages


def test_a_built_in_ring_has_the_same_steps_again() -> None:
    of_steps = pl.from_generator("ring", "all_reduce", 6, name="mine")
    of_chunks = pl.from_generator("ring", "all_reduce").build("mine", ranks=6)
    assert of_chunks.data == of_steps.data


def test_a_built_in_one_is_a_part_of_a_function() -> None:
    gather = pl.from_generator("pat", "all_gather")

    @pl.algorithm("all_gather")
    def twice(c: pl.Program) -> None:
        gather(c)
        gather(c)

    once = gather.build("mine", ranks=4).schedule
    assert len(twice.build("mine", ranks=4).schedule.steps) > len(once.steps)


def test_a_capsule_of_a_built_in_one_is_no_part() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="without a number of ranks"):
        pl.compose(
            inside=ring_all_gather,
            across=pl.from_generator("pat", "all_gather", 2),  # type: ignore[arg-type]
            ranks_per_host=2,
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranks_per_host": 1}, "ranks_per_host is 1; it must be 2 or more"),
        ({"inside": SCATTER}, "needs reduce_scatter and all_gather inside them, not reduce_scatt"),
        ({"inside": ()}, "inside them, not nothing"),
        ({"across": algorithms.relayed_all_to_all}, "all_to_all is not composed; there are all_re"),
    ],
)
def test_what_does_not_fit_together_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=message):
        pl.compose(**COMPOSED["all_reduce"] | {"ranks_per_host": 2} | wrong)  # type: ignore


@pytest.mark.parametrize("ranks", [2, 5])
def test_ranks_that_are_no_hosts_are_refused(ranks: int) -> None:
    whole = pl.compose(inside=ring_all_gather, across=ring_all_gather, ranks_per_host=2)
    with pytest.raises(pccl.InvalidArgumentError, match="no two or more hosts of 2 ranks each"):
        whole.build(ranks=ranks)

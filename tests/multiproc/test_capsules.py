# SPDX-License-Identifier: Apache-2.0
"""Capsules that groups load: results against numpy and torch, and agreement of all ranks."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
import pccl.lang as pl
from pccl import published, schedule
from support import algorithms, msccl_xml, mscclpp_plans, synthesised_xml
from support.launch import run_ranks
from support.numpy_collectives import data_of, executed, expected_of
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

RANKS = 3


def capsule_of(
    algorithm: str, collective: Any, ranks: int = RANKS, name: str = "mine", root: int = 0
) -> pccl.Capsule:
    made = schedule.generate(algorithm, collective, ranks, root=root)
    return pccl.Capsule.of(made.renamed(name))


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("count", [1, 5, 3000, 200_000])
def test_a_loaded_capsule_runs_over_links_and_sums(
    tmp_path: Path, transports: str, count: int
) -> None:
    capsule = capsule_of("ring", "all_reduce")

    def body(comm: pccl.Communicator) -> tuple[str, bool]:
        operator = comm.load(capsule, "..")
        chosen = pccl.explain("all_reduce", 8 * count, comm).chosen
        x = data_of(comm.rank, count)
        comm.all_reduce(x)
        y = data_of(comm.rank, count)
        operator.run(y, op="max")
        total = sum(data_of(rank, count) for rank in range(RANKS))
        return chosen.algorithm, bool(
            np.array_equal(x, total) and np.array_equal(y, data_of(RANKS - 1, count))
        )

    assert run_threads(tmp_path, RANKS, body, transports=transports) == [("mine", True)] * RANKS


@pytest.mark.parametrize(
    ("algorithm", "collective"),
    [
        ("pat", "all_gather"),
        ("recursive_halving", "reduce_scatter"),
        ("pairwise", "all_to_all"),
        ("binomial", "broadcast"),
        ("binomial", "reduce"),
        ("binomial", "gather"),
        ("binomial", "scatter"),
    ],
)
def test_operators_make_every_collective(tmp_path: Path, algorithm: str, collective: str) -> None:
    root = 1 if collective in ("broadcast", "reduce", "gather", "scatter") else 0
    count = 120
    capsule = capsule_of(algorithm, collective, root=root)
    inputs = np.stack([data_of(rank, RANKS * count) for rank in range(RANKS)])
    blocks = inputs.reshape(RANKS, RANKS, count)

    def body(comm: pccl.Communicator) -> bool:
        operator = comm.load(capsule)
        me = comm.rank
        whole = inputs[me].copy()
        block = inputs[me][:count].copy()
        out = np.zeros(RANKS * count, np.int64)
        part = np.zeros(count, np.int64)
        if collective == "all_gather":
            operator.run(block, out)
            return np.array_equal(out, inputs[:, :count].ravel())
        if collective == "reduce_scatter":
            operator.run(whole, part)
            return np.array_equal(part, blocks.sum(axis=0)[me])
        if collective == "all_to_all":
            operator.run(whole, out)
            return np.array_equal(out, blocks[:, me].ravel())
        if collective == "broadcast":
            operator.run(whole)
            return np.array_equal(whole, inputs[root])
        if collective == "reduce":
            operator.run(whole)
            return me != root or np.array_equal(whole, inputs.sum(axis=0))
        if collective == "gather":
            operator.run(block, out)
            return me != root or np.array_equal(out, inputs[:, :count].ravel())
        operator.run(whole, part)
        return np.array_equal(part, blocks[root, me])

    assert run_threads(tmp_path, RANKS, body) == [True] * RANKS


def test_it_is_taken_within_its_sizes_alone_and_until_it_is_unloaded(tmp_path: Path) -> None:
    capsule = capsule_of("ring", "all_reduce")

    def body(comm: pccl.Communicator) -> list[object]:
        pccl.capsule.load_capsule(capsule, comm, "4KB..64KB")

        def chosen() -> list[bool]:
            sizes = (4095, 4096, 65536, 65537)
            ways = [pccl.explain("all_reduce", size, comm).chosen for size in sizes]
            return [way.algorithm == "mine" for way in ways]

        listed = pccl.capsule.capsules(comm).rows
        before = chosen()
        pccl.capsule.unload_capsule("mine", comm)
        return [before, chosen(), listed, len(comm.capsules())]

    digest = capsule.digest[:16]
    listed = [{"name": "mine", "collective": "all_reduce", "sizes": "4KB..64KB", "digest": digest}]
    expected = [[False, True, True, False], [False] * 4, listed, 0]
    assert run_threads(tmp_path, RANKS, body) == [expected] * RANKS


def test_blocks_of_unlike_lengths_go_by_another_way(tmp_path: Path) -> None:
    capsule = capsule_of("ring", "all_gather")

    def body(comm: pccl.Communicator) -> bool:
        comm.load(capsule, "..")
        outs = [np.zeros(rank + 1, np.int64) for rank in range(RANKS)]
        comm.all_gather(outs, data_of(comm.rank, comm.rank + 1))
        return all(np.array_equal(out, data_of(i, i + 1)) for i, out in enumerate(outs))

    assert run_threads(tmp_path, RANKS, body) == [True] * RANKS


def test_algorithm_names_one_that_is_loaded_later(tmp_path: Path) -> None:
    capsule = capsule_of("ring", "all_reduce")
    store = f"file://{tmp_path}/store"

    def body(rank: int, world_size: int) -> tuple[str, float]:
        comm = pccl.Communicator(
            rank=rank, world_size=world_size, rendezvous=store, algorithm="all_reduce=mine"
        )
        with pytest.raises(pccl.InvalidArgumentError, match="mine, cannot make this all_reduce"):
            comm.all_reduce(np.ones(4))
        comm.load(capsule, "by name")
        x = np.ones(4)
        comm.all_reduce(x)
        name = pccl.explain("all_reduce", 32, comm).chosen.algorithm
        comm.barrier()
        return name, float(x.sum())

    with ThreadPoolExecutor(2) as pool:
        capsule = capsule_of("ring", "all_reduce", 2)
        futures = [pool.submit(body, rank, 2) for rank in range(2)]
        assert [future.result(60) for future in futures] == [("mine", 8.0)] * 2


def test_ranks_with_another_capsule_are_named(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> tuple[str, int]:
        other = comm.rank == 2
        with pytest.raises(pccl.MismatchError) as error:
            comm.load(capsule_of("pat" if other else "ring", "all_reduce"))
        comm.barrier()  # the group goes on
        return str(error.value), len(comm.capsules())

    for message, loaded in run_threads(tmp_path, RANKS, body):
        assert "rank 2 and rank 0 do not load the same" in message
        assert loaded == 0


def test_ranks_with_other_sizes_are_named(tmp_path: Path) -> None:
    capsule = capsule_of("ring", "all_reduce")

    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.MismatchError) as error:
            comm.load(capsule, "1MB.." if comm.rank == 1 else "..1KB")
        return str(error.value)

    for message in run_threads(tmp_path, RANKS, body):
        assert "rank 1 and rank 0" in message
        assert "sizes 1MB.. there, sizes ..1KB at rank 0" in message


def test_a_rank_that_cannot_read_its_file_keeps_the_others_from_loading(tmp_path: Path) -> None:
    file = tmp_path / "ring.capsule"
    capsule_of("ring", "all_reduce").save(file)

    def body(comm: pccl.Communicator) -> str:
        path = file if comm.rank != 1 else tmp_path / "missing.capsule"
        with pytest.raises(pccl.Error) as error:
            comm.load(path)
        return f"{type(error.value).__name__}: {error.value}"

    zero, one, two = run_threads(tmp_path, RANKS, body)
    assert one.startswith("UnavailableError")
    assert "missing.capsule: there is no such file" in one
    for other in (zero, two):
        assert other.startswith("MismatchError")
        assert "rank 1 cannot: " in other
        assert "missing.capsule: there is no such file" in other


def test_a_capsule_for_other_ranks_or_of_a_taken_name_is_refused(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        with pytest.raises(pccl.InvalidArgumentError, match="for 4 ranks, this group has 3"):
            comm.load(capsule_of("ring", "all_reduce", 4))
        with pytest.raises(pccl.InvalidArgumentError, match="already with the name ring"):
            comm.load(capsule_of("ring", "all_reduce", name="ring"))
        with pytest.raises(pccl.InvalidArgumentError, match="no schedule mine was loaded"):
            comm.unload("mine")
        with pytest.raises(pccl.InvalidArgumentError, match="no range of sizes"):
            comm.load(capsule_of("ring", "all_reduce"), "large")

    run_threads(tmp_path, RANKS, body)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_groups_take_the_program_for_their_own_ranks_of_one_file(
    tmp_path: Path, ranks: int
) -> None:
    file = tmp_path / "any.capsule"
    capsule = algorithms.ring.build("any", ranks=range(2, 5))
    capsule.save(file)

    def body(comm: pccl.Communicator) -> list[object]:
        operator = comm.load(capsule if comm.rank % 2 else file, "64KB..")
        x, y = data_of(comm.rank, 100_000), data_of(comm.rank, 7)
        comm.all_reduce(x)  # as it was chosen for its size
        operator.run(y)
        chosen = pccl.explain("all_reduce", x.nbytes, comm).chosen
        listed = pccl.capsule.capsules(comm).rows
        sums = [sum(data_of(rank, each.size) for rank in range(ranks)) for each in (x, y)]
        right = np.array_equal(x, sums[0]) and np.array_equal(y, sums[1])
        pccl.capsule.unload_capsule("any", comm)
        return [right, operator.name, chosen.algorithm, listed]

    listed = {"name": "any", "collective": "all_reduce", "sizes": "64KB.."}
    expected = [True, "any", "any", [listed | {"digest": capsule.digest[:16]}]]
    assert run_threads(tmp_path, ranks, body) == [expected] * ranks


def test_a_file_without_a_program_for_the_group_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "any.capsule"
    algorithms.ring.build("any", ranks=[2, 4, 5, 6]).save(file)

    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.InvalidArgumentError) as error:
            comm.load(file)
        comm.barrier()  # the group goes on
        return str(error.value)

    output = ["capsule any is for 2 4..6 ranks, this group has 3"] * RANKS
    assert run_threads(tmp_path, RANKS, body) == output


def test_ranks_with_another_file_for_the_same_program_are_named(tmp_path: Path) -> None:
    several = algorithms.ring.build("any", ranks=range(2, 5))

    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.MismatchError) as error:
            comm.load(several if comm.rank == 0 else several.for_ranks(RANKS))
        return str(error.value)

    for message in run_threads(tmp_path, RANKS, body):
        assert "ranks 1, 2 and rank 0 do not load the same" in message
        assert several.digest[:16] in message


def load_on_torch(rank: int, world_size: int, path: str) -> tuple[list[str], str, bool]:
    import torch
    import torch.distributed as dist

    pccl.capsule.load_capsule(path, sizes="1KB..")
    x = torch.arange(5000, dtype=torch.float64) + rank
    dist.all_reduce(x)
    expected = world_size * torch.arange(5000, dtype=torch.float64) + sum(range(world_size))
    chosen = pccl.explain("all_reduce", 40_000).chosen.algorithm
    listed = [each.name for each in pccl.capsule.capsules()]
    assert "by schedule" in pccl.diagnostics.flight_record()["entries"][-1]["operation"]
    pccl.capsule.unload_capsule("mine")
    assert not pccl.capsule.capsules()
    return listed, chosen, bool(torch.equal(x, expected))


@pytest.mark.parametrize("ranks", [[2], [2, 3]])
def test_torch_groups_load_capsules(tmp_path: Path, ranks: list[int]) -> None:
    file = tmp_path / "ring.capsule"
    pccl.Capsule.join([capsule_of("ring", "all_reduce", each) for each in ranks]).save(file)
    found = run_ranks(load_on_torch, 2, arguments=(str(file),), backend="pccl")
    assert found == [(["mine"], "mine", True)] * 2


def load_what_switches_on_torch(rank: int, world_size: int, path: str) -> str:
    import torch
    import torch.distributed as dist

    with pytest.raises(pccl.UnsupportedError) as refused:
        pccl.capsule.load_capsule(path)
    x = torch.ones(10)
    dist.all_reduce(x)
    assert x[0] == world_size
    return str(refused.value)


def test_torch_groups_refuse_capsules_that_switch_phases(tmp_path: Path) -> None:
    file = tmp_path / "switched.capsule"
    published.switched_halving.build(ranks=2).save(file)
    for output in run_ranks(load_what_switches_on_torch, 2, arguments=(str(file),), backend="pccl"):
        assert "a pccl.Communicator does, no process group of torch" in output
        assert "\n" not in output


def use_what_is_given(rank: int, world_size: int) -> tuple[list[str], str, bool]:
    import torch
    import torch.distributed as dist

    x = torch.full((64,), rank + 1, dtype=torch.int32)
    dist.all_reduce(x)
    chosen = pccl.explain("all_reduce", 256).chosen.algorithm
    return [each.name for each in pccl.capsule.capsules()], chosen, bool((x == 3).all())


def test_the_environment_gives_capsules_to_unchanged_programs(
    tmp_path: Path,
) -> None:
    capsule_of("ring", "all_reduce", 2).save(tmp_path / "two.capsule")
    algorithms.ring.build("any", ranks=[2, 8], sizes="by name").save(tmp_path / "any.capsule")
    capsule_of("ring", "all_reduce", 3, name="three").save(tmp_path / "three.capsule")
    algorithms.ring.build("more", ranks=range(3, 6)).save(tmp_path / "more.capsule")
    (tmp_path / "broken.capsule").write_bytes(b"no capsule")
    found = run_ranks(
        use_what_is_given, 2, backend="pccl", environment={"PCCL_CAPSULES": str(tmp_path)}
    )
    assert found == [(["any", "mine"], "mine", True)] * 2


def give_rank_1_another(rank: int, world_size: int, folder: str) -> str:
    os.environ["PCCL_CAPSULES"] = f"{folder}/{'b' if rank == 1 else 'a'}.capsule"
    with pytest.raises(pccl.MismatchError) as error:
        pccl.Communicator(
            rank=rank, world_size=world_size, rendezvous=f"file://{folder}/store", timeout=20
        )
    return str(error.value)


def test_ranks_that_the_environment_gives_others_are_named(tmp_path: Path) -> None:
    capsule_of("ring", "all_reduce", 2).save(tmp_path / "a.capsule")
    capsule_of("pat", "all_reduce", 2).save(tmp_path / "b.capsule")
    for message in run_ranks(give_rank_1_another, 2, arguments=(str(tmp_path),), backend=None):
        assert "PCCL_CAPSULES gives rank 1 other capsules than rank 0" in message


@pytest.mark.parametrize("made", algorithms.ALGORITHMS, ids=lambda made: made.function.__name__)
@pytest.mark.parametrize("instances", [1, 3])
def test_algorithms_of_the_language_run(tmp_path: Path, made: pl.Algorithm, instances: int) -> None:
    ranks = 4
    capsule = made.build("mine", ranks=ranks, instances=instances)
    root = capsule.schedule.root

    def body(comm: pccl.Communicator) -> list[bool]:
        operator = comm.load(capsule, "by name")
        right = []
        for count in (4, 4 * 777, 4 * 40_000):
            inputs = np.stack([data_of(rank, count) for rank in range(ranks)])
            found = executed(operator, inputs[comm.rank].copy(), ranks)
            expected = expected_of(made.collective, inputs, comm.rank, root)
            right.append(expected is None or np.array_equal(found, expected))
        return right

    assert run_threads(tmp_path, ranks, body) == [[True] * 3] * ranks


def test_steps_of_the_language_run(tmp_path: Path) -> None:
    capsule = algorithms.two_rank_steps().build("two")

    def body(comm: pccl.Communicator) -> float:
        x = np.full(1000, comm.rank + 1.0)
        comm.load(capsule).run(x)
        return float(x.sum())

    assert run_threads(tmp_path, 2, body) == [3000.0] * 2


def run_imported(tmp_path: Path, capsule: pccl.Capsule, ranks: int) -> None:
    """On blocks that divide among chunks, and on those that do not."""

    def body(comm: pccl.Communicator) -> list[bool]:
        operator = comm.load(capsule, "by name")
        right = []
        for count in (ranks, ranks * 777, ranks * 40_000):
            inputs = np.stack([data_of(rank, count) for rank in range(ranks)])
            found = executed(operator, inputs[comm.rank].copy(), ranks)
            expected = expected_of(operator.collective, inputs, comm.rank, 0)
            right.append(np.array_equal(found, expected))
        return right

    assert run_threads(tmp_path, ranks, body) == [[True] * 3] * ranks


@pytest.mark.parametrize(
    "algo",
    [*msccl_xml.programs(), *synthesised_xml.programs()],
    ids=lambda algo: f"{algo.name}-{algo.coll}-{algo.ranks}-{algo.inplace}-{algo.proto}",
)
def test_programs_of_msccl_run(tmp_path: Path, algo: msccl_xml.Algo) -> None:
    file = tmp_path / "algo.xml"
    file.write_text(algo.xml())
    run_imported(tmp_path, pccl.Capsule.from_msccl(file, name="mine"), algo.ranks)


@pytest.mark.parametrize(
    "plan", mscclpp_plans.plans(), ids=lambda plan: f"{plan.name}-{plan.ranks}"
)
def test_plans_of_mscclpp_run(tmp_path: Path, plan: mscclpp_plans.Plan) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan.text())
    run_imported(tmp_path, pccl.Capsule.from_mscclpp(file, name="mine"), plan.ranks)


@pytest.mark.parametrize(
    "made",
    [
        algorithms.ring,
        algorithms.all_pairs,
        algorithms.ring_reduce_scatter,
        algorithms.relayed_all_to_all,
        algorithms.through_scratch,
    ],
    ids=lambda made: made.function.__name__,
)
def test_what_was_exported_runs(tmp_path: Path, made: pl.Algorithm) -> None:
    file = tmp_path / "algo.xml"
    file.write_text(made.build("mine", ranks=4).to_msccl())
    run_imported(tmp_path, pccl.Capsule.from_msccl(file), 4)

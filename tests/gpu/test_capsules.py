# SPDX-License-Identifier: Apache-2.0
"""Capsules on CUDA tensors: chosen for their sizes, right, in graphs, as the file is on CPUs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, MOST_RANKS, RANKS, run_gpu_ranks

import pccl
import pccl.lang as pl
from pccl import timeline
from pccl.bench.capsule_timeline import recorded
from pccl.errors import MismatchError

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)


@pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
def all_pairs(c: pl.Program) -> None:
    """Each rank adds up one chunk of all, and sends the sum to all."""
    for owner in range(c.ranks):
        for hop in range(1, c.ranks):
            total = c.input((owner + hop) % c.ranks, owner).reduce_to(owner)
        for hop in range(1, c.ranks):
            total.copy_to((owner + hop) % c.ranks)


def capsules_for(ranks: int) -> list[pccl.Capsule]:
    built_in = [
        pl.from_generator(name, "all_reduce", ranks, name=f"{name}_capsule")
        for name in ("ring", "double_binary_tree", "pat", "swing")
    ]
    return [*built_in, all_pairs.build(ranks=ranks, name="all_pairs")]


def expect_sum(rank: int, ranks: int, numel: int) -> None:
    x = part(rank, numel)
    dist.all_reduce(x)
    wanted = torch.stack([part(each, numel) for each in range(ranks)]).sum(0)
    torch.testing.assert_close(x, wanted, rtol=0, atol=0)


def use_each(rank: int, ranks: int, store: Any) -> None:
    meet(rank, ranks, store)
    with pytest.raises(pccl.UnavailableError, match="are not connected"):
        pccl.explain("all_reduce", 4096, device="cuda")
    for capsule in capsules_for(ranks):
        pccl.capsule.load_capsule(capsule, sizes="4KB..")
        for numel in (5, 1024, 70_001, 3_000_001):
            expect_sum(rank, ranks, numel)
        kernels = [
            pccl.explain("all_reduce", nbytes, device="cuda").launches[0].kernel
            for nbytes in (4095, 4096)
        ]
        assert kernels == ["all_reduce", f"program of {capsule.name}"]
        pccl.capsule.unload_capsule(capsule.name)
    expect_sum(rank, ranks, 70_001)
    torch.cuda.synchronize()
    dist.destroy_process_group()


@pytest.mark.parametrize("world_size", range(2, MOST_RANKS + 1))
def test_each_gives_the_sum(world_size: int) -> None:
    run_gpu_ranks(world_size, use_each)


def sum_on_both(rank: int, ranks: int, store: Any) -> list[list[float]]:
    meet(rank, ranks, store)
    pccl.capsule.load_capsule(pl.from_generator("ring", "all_reduce", ranks, name="ring_capsule"))
    generator = torch.Generator().manual_seed(rank)
    found = []
    for numel in (1000, 100_003):
        x = torch.randn(numel, generator=generator)
        y = x.cuda()
        dist.all_reduce(x)
        dist.all_reduce(y)
        assert torch.equal(x, y.cpu())
        found.append(x[:100].tolist())
    dist.destroy_process_group()
    return found


def test_floats_have_the_bits_that_they_have_on_cpus() -> None:
    first, *others = run_gpu_ranks(4, sum_on_both)  # two add up in one order only
    assert all(each == first for each in others)


def replay(rank: int, ranks: int, store: Any) -> None:
    meet(rank, ranks, store)
    pccl.capsule.load_capsule(all_pairs.build(ranks=ranks, name="all_pairs"))
    x = torch.zeros(70_001, device="cuda")
    dist.all_reduce(x)  # a program's first launch brings it to the GPU
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(x)
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        torch.testing.assert_close(x, torch.full_like(x, value * ranks), rtol=0, atol=0)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def test_in_a_graph() -> None:
    run_gpu_ranks(RANKS, replay)


def record(rank: int, ranks: int, store: Any) -> timeline.Timeline:
    """Return the timeline of one call, of which the clocks of GPUs and host agree as they say."""
    meet(rank, ranks, store)
    pccl.capsule.load_capsule(pl.from_generator("ring", "all_reduce", ranks, name="ring_capsule"))
    x = torch.zeros(3_000_001, device="cuda")
    dist.all_reduce(x)
    dist.all_reduce(torch.zeros(70_001))
    timeline.record()
    dist.all_reduce(x)
    dist.all_reduce(torch.zeros(70_001))
    found = timeline.gather()
    dist.destroy_process_group()
    return found


def test_a_timeline_has_the_steps_of_gpus() -> None:
    first, *others = run_gpu_ranks(RANKS, record)
    assert all(each.steps == first.steps for each in others)
    of_gpus = first.of_call(-1)
    assert {step.rank for step in of_gpus.steps} == set(range(RANKS))
    assert all(step.begin <= step.moved <= step.end for step in of_gpus.steps)
    assert 0 < first.clock_error < 1e-3
    hops = of_gpus.hops
    assert sum(hop.sent.bytes for hop in hops) == 2 * (RANKS - 1) * 3_000_001 * 4
    assert all(hop.sent.begin <= hop.received.end + 2 * first.clock_error for hop in hops)


def test_bench_records_a_capsule_on_gpus() -> None:
    capsule = pl.from_generator("ring", "all_reduce", RANKS, name="ring_capsule")
    found = recorded(capsule.data, 1 << 20, "cuda")
    assert found.timeline.simulated is not None
    assert all(step.is_on_gpu for step in found.timeline.steps)
    assert {step.rank for step in found.timeline.steps} == set(range(RANKS))
    assert sum(hop.sent.bytes for hop in found.timeline.hops) == 2 * (RANKS - 1) * (1 << 20)


def load_before_the_gpus_meet(rank: int, ranks: int, store: Any) -> str:
    """Where the file is another on some rank, no rank has it afterwards, on CPUs or GPUs."""
    meet(rank, ranks, store)
    name = "ring" if rank == 0 else "pat"
    output = ""
    try:
        pccl.capsule.load_capsule(pl.from_generator(name, "all_reduce", ranks, name="mine"))
    except MismatchError as error:
        output = str(error)
    expect_sum(rank, ranks, 70_001)
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return output


def test_another_file_on_some_rank_is_refused_on_all() -> None:
    output = run_gpu_ranks(RANKS, load_before_the_gpus_meet)
    assert all("do not load the same" in each for each in output)

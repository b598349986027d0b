# SPDX-License-Identifier: Apache-2.0
"""DeviceGroup on real GPUs. Nothing here runs where there are none."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
import torch
from tests.gpu import cases
from tests.gpu.device_groups import agree, finish, make_group, run_all
from tests.gpu.ranks import GPUS, MOST_RANKS, RANKS, run_gpu_ranks

from pccl import _core, errors
from pccl.errors import Error, MismatchError

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

WORLD_SIZES = range(2, MOST_RANKS + 1)
GIB_OF_THE_LARGEST = 14  # of a rank, references included


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_sizes_and_protocols(world_size: int) -> None:
    chosen = [
        cases.Case(collective, torch.bfloat16, count, protocol=protocol, seed=count)
        for collective in cases.COLLECTIVES
        for count in (1, 7, 64, 515, 8192, 65_536)
        for protocol in (None, "ll", "direct", "staggered", "copy_engine")
    ]
    chosen += [
        cases.Case(collective, torch.float32, count, seed=count)
        for collective in cases.COLLECTIVES
        for count in (1_000_003, 4_194_304)
    ]
    chosen += [
        cases.Case(collective, torch.bfloat16, count, protocol="staggered", seed=count)
        for collective in cases.COLLECTIVES
        for count in (16_384, 1_000_003, 4_194_304)
    ]
    chosen += [cases.Case("all_reduce", torch.bfloat16, 101_000_003, seed=7)]
    agree(chosen, run_gpu_ranks(world_size, run_all, chosen))


@pytest.mark.parametrize("world_size", sorted({3, RANKS, MOST_RANKS}))
def test_the_largest_messages(world_size: int) -> None:
    """What goes in two kernels, or by copy engines: first without cached pointers, then with."""
    room = torch.cuda.get_device_properties(0).total_memory * GPUS / world_size
    if room < GIB_OF_THE_LARGEST << 30:
        pytest.skip(
            f"needs {GIB_OF_THE_LARGEST} GiB for each rank, and here are {room / 2**30:.0f}"
        )
    block = (410 << 19) // (world_size - 1)
    chosen = [
        cases.Case("all_reduce", torch.bfloat16, 210_000_003, seed=1),
        cases.Case("all_reduce", torch.bfloat16, 210_000_003, in_place=True, seed=2),
        cases.Case("all_gather", torch.bfloat16, block, seed=3),
        cases.Case("all_to_all", torch.bfloat16, block, seed=4),
        cases.Case("reduce", torch.bfloat16, 210_000_003, root=1, seed=5),
        cases.Case("reduce", torch.bfloat16, 210_000_003, in_place=True, seed=6),
        cases.Case("scatter", torch.bfloat16, block, root=1, seed=7),
    ]
    chosen = [case for case in chosen for _ in range(2)]
    agree(chosen, run_gpu_ranks(world_size, run_all, chosen))


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_random_cases(world_size: int) -> None:
    chosen = [cases.random_case(world_size, seed) for seed in range(200)]
    agree(chosen, run_gpu_ranks(world_size, run_all, chosen))


def swap(rank: int, world_size: int, store: Any) -> None:
    group = make_group(rank, world_size, store)
    stream = torch.cuda.current_stream().cuda_stream
    peers = range(world_size)

    def numel(source: int, target: int, step: int) -> int:
        return [1, 77, 5000, 1 << 20][(source + 2 * target + step) % 4]

    def filled(source: int, target: int, step: int, at: int) -> torch.Tensor:
        shape = (numel(source, target, step),)
        return torch.full(shape, 1000.0 * step + 10 * source + target + 0.5 * at, device="cuda")

    for step in range(12):
        twice = range(1 + step % 2)  # two messages to each: launched one after the other
        sent = {(to, at): filled(rank, to, step, at) for to in peers for at in twice}
        got = {
            (of, at): torch.zeros(numel(of, rank, step), device="cuda")
            for of in peers
            for at in twice
        }
        torch.cuda.synchronize()
        group.exchange(
            sends=[(to, x.data_ptr(), x.nbytes) for (to, _), x in sent.items()],
            receives=[(of, x.data_ptr(), x.nbytes) for (of, _), x in got.items()],
            stream=stream,
        )
        torch.cuda.synchronize()
        group.check()
        for (of, at), x in got.items():
            assert torch.equal(x, filled(of, rank, step, at)), (step, of, at)
    finish(rank, world_size, store)


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_messages(world_size: int) -> None:
    run_gpu_ranks(world_size, swap)


def send_too_much(rank: int, world_size: int, store: Any) -> None:
    group = make_group(rank, world_size, store, timeout=5.0)
    x = torch.zeros(64, device="cuda")
    message = [(1 - rank, x.data_ptr(), 128 + 64 * rank)]
    group.exchange(
        sends=message if rank == 0 else [],
        receives=message if rank == 1 else [],
        stream=torch.cuda.current_stream().cuda_stream,
    )
    torch.cuda.synchronize()
    with pytest.raises(MismatchError, match="rank 0 sends 128 bytes, but rank 1 expects 192"):
        group.check()
    finish(rank, world_size, store)


def test_a_message_of_another_length_is_refused() -> None:
    run_gpu_ranks(2, send_too_much)


def test_each_kernel_alone() -> None:
    """All kernels on a rank without peers: what compute-sanitizer, to which peers' memory is
    unknown, can look at.
    """
    chosen = [
        cases.Case(collective, dtype, count, protocol=protocol, offset=1)
        for collective in cases.COLLECTIVES
        for protocol in ("ll", "direct", "staggered", "copy_engine")
        for dtype, count in ((torch.bfloat16, 4099), (torch.float32, 70_001))
        if protocol != "ll" or count < 10_000
        # In turns, a rank gathers what it pushes to others: alone it has nobody to push to.
        if (collective, protocol) != ("all_gather", "staggered")
    ]
    run_gpu_ranks(1, run_all, chosen)


def pull_again(rank: int, world_size: int, store: Any) -> None:
    """What copy engines pull follows cached pointers: right, wrong, and to freed memory."""
    group = make_group(rank, world_size, store)
    plan = _core.DevicePlan(protocol="copy_engine", blocks=4)
    stream = torch.cuda.current_stream().cuda_stream
    for kind, numel in (("all_gather", 8 << 20), ("all_to_all", 8 << 20)):
        count = numel if kind == "all_gather" else numel // world_size
        source = torch.empty(numel, device="cuda", dtype=torch.int32)
        output = torch.empty(count * world_size, device="cuda", dtype=torch.int32)
        at = torch.arange(numel, device="cuda", dtype=torch.int32)
        for step in range(7):
            if step in (3, 5) and rank == 1:
                kept = source if step == 3 else None
                del source
                torch.cuda.empty_cache()
                source = torch.empty(numel, device="cuda", dtype=torch.int32)
            source.copy_(at + 1000 * rank + step)
            output.fill_(-1)
            group.launch(
                kind,
                input=source.data_ptr(),
                output=output.data_ptr(),
                count=count,
                dtype="int32",
                stream=stream,
                plan=plan,
            )
            part = at if kind == "all_gather" else at[rank * count :][:count]
            for peer in range(world_size):
                got = output[peer * count :][:count]
                assert torch.equal(got, part + 1000 * peer + step), (kind, step, peer)
            group.check()
        kept = None
    del kept
    finish(rank, world_size, store)


@pytest.mark.parametrize("world_size", sorted({RANKS, MOST_RANKS}))
def test_cached_pointers_may_be_wrong(world_size: int) -> None:
    run_gpu_ranks(world_size, pull_again)


def replay_graphs(rank: int, world_size: int, store: Any) -> None:
    group = make_group(rank, world_size, store)
    mixed = [
        cases.Case("all_reduce", torch.float32, 1000, seed=1),
        cases.Case("all_gather", torch.bfloat16, 300_001, seed=2),
        cases.Case("all_reduce", torch.bfloat16, 1 << 20, seed=3),
        cases.Case("reduce_scatter", torch.float16, 2048, seed=4),
        cases.Case("all_gather", torch.float32, 200_000, protocol="copy_engine", seed=6),
        cases.Case("all_to_all", torch.bfloat16, 70_001, protocol="copy_engine", seed=7),
        cases.Case("all_reduce", torch.float32, 300_001, algorithm="ring", seed=8),
        cases.Case("broadcast", torch.int32, 70_001, algorithm="double_binary_tree", seed=9),
    ]
    memory = [cases.tensors(case, rank, world_size) for case in mixed]
    for case, (source, output) in zip(mixed, memory, strict=True):
        cases.launch(group, case, source, output)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for case, (source, output) in zip(mixed, memory, strict=True):
            cases.launch(group, case, source, output)
    for _ in range(20):
        for _, output in memory:
            output.view(torch.uint8).fill_(cases.POISON)
        graph.replay()
        cases.run_case(group, cases.Case("broadcast", torch.int32, 12_345, root=1, seed=5))
        for case, (_, output) in zip(mixed, memory, strict=True):
            cases.check(case, rank, world_size, output)
    finish(rank, world_size, store)


@pytest.mark.parametrize("world_size", sorted({RANKS, MOST_RANKS}))
def test_graphs_replay_between_other_launches(world_size: int) -> None:
    run_gpu_ranks(world_size, replay_graphs)


def case_of(way: str) -> cases.Case:
    """Return an all_reduce by a protocol, or by the schedule of an algorithm."""
    if way == "ring":
        return cases.Case("all_reduce", torch.float32, 1000, algorithm=way)
    return cases.Case("all_reduce", torch.float32, 1000, protocol=way)


def wait_in_vain(rank: int, world_size: int, store: Any, way: str) -> float:
    group = make_group(rank, world_size, store, timeout=3.0)
    case = case_of(way)
    cases.run_case(group, case)
    began = time.monotonic()
    if rank != 1:
        source, output = cases.tensors(case, rank, world_size)
        cases.launch(group, case, source, output)
        torch.cuda.synchronize()
        with pytest.raises(errors.TimeoutError, match="waited for rank 1"):
            group.check()
    spent = time.monotonic() - began
    finish(rank, world_size, store)
    return spent


@pytest.mark.parametrize("way", ["ll", "direct", "staggered", "ring"])
def test_a_missing_rank_is_named(way: str) -> None:
    spent = run_gpu_ranks(2, wait_in_vain, way)
    assert 2.0 < spent[0] < 20.0


def run_forever(group: _core.DeviceGroup, case: cases.Case) -> None:
    while True:
        cases.run_case(group, case)


def outlive(rank: int, world_size: int, store: Any, way: str) -> float:
    group = make_group(rank, world_size, store)
    case = case_of(way)
    cases.run_case(group, case)
    finish(rank, world_size, store)
    if rank == 1:
        os._exit(0)
    began = time.monotonic()
    with pytest.raises(Error):
        run_forever(group, case)
    return time.monotonic() - began


@pytest.mark.parametrize("way", ["ll", "direct", "staggered", "ring"])
def test_a_dead_rank_frees_the_others(way: str) -> None:
    spent = run_gpu_ranks(RANKS, outlive, way)
    assert all(each < 10.0 for rank, each in enumerate(spent) if rank != 1)

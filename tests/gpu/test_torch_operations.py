# SPDX-License-Identifier: Apache-2.0
"""Every operation of torch.distributed on CUDA tensors, with backend "pccl".

Values are small whole numbers, so that every result is exact in every type.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, RANKS, meet_in_host, run_gpu_ranks

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

SIZES = (1, 1000, 100_003, 2_000_000)


def total(world_size: int, numel: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return sum(part(peer, numel, dtype) for peer in range(world_size))


def empty(numel: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((numel,), 99, device="cuda").to(dtype)


def is_without_kernels() -> bool:
    """Tell whether the CPU's transports carry tensors, where float8 is not reduced."""
    return meet_in_host() and os.environ.get("PCCL_GPU_HOST_KERNELS") == "0"


def rooted(rank: int, world_size: int) -> None:
    for root in range(world_size):
        for numel in SIZES:
            is_root = rank == root
            x = part(rank, numel)
            dist.reduce(x, root)
            assert torch.equal(x, total(world_size, numel) if is_root else part(rank, numel))
            parts = [empty(numel) for _ in range(world_size)] if is_root else None
            dist.gather(part(rank, numel), parts, dst=root)
            for peer, each in enumerate(parts or []):
                assert torch.equal(each, part(peer, numel))
            mine = empty(numel)
            sent = [part(peer + 5, numel) for peer in range(world_size)] if is_root else None
            dist.scatter(mine, sent, src=root)
            assert torch.equal(mine, part(rank + 5, numel))


def lists(rank: int, world_size: int) -> None:
    for numel in (*SIZES, 9_000_000):
        lengths = [numel + 3 * peer for peer in range(world_size)]
        gathered = [empty(length) for length in lengths]
        dist.all_gather(gathered, part(rank, lengths[rank]))
        for peer, each in enumerate(gathered):
            assert torch.equal(each, part(peer, lengths[peer])), (numel, peer)
        mine = empty(lengths[rank])
        dist.reduce_scatter(mine, [part(rank + 2 * to, lengths[to]) for to in range(world_size)])
        want = sum(part(peer + 2 * rank, lengths[rank]) for peer in range(world_size))
        assert torch.equal(mine, want), numel


def uneven(rank: int, world_size: int) -> None:
    for scale in (1, 100, 100_000):
        rows = [[(of + 2 * to) % 3 * scale for to in range(world_size)] for of in range(world_size)]
        sent = [part(10 * rank + to, rows[rank][to]) for to in range(world_size)]
        want = [part(10 * of + rank, rows[of][rank]) for of in range(world_size)]
        got = empty(sum(row[rank] for row in rows))
        dist.all_to_all_single(got, torch.cat(sent), [row[rank] for row in rows], rows[rank])
        assert torch.equal(got, torch.cat(want)), scale
        listed = [empty(row[rank]) for row in rows]
        dist.all_to_all(listed, sent)
        for each, expected in zip(listed, want, strict=True):
            assert torch.equal(each, expected), scale


def coalesced(rank: int, world_size: int) -> None:
    tensors = [part(rank, numel) for numel in SIZES]
    dist.all_reduce_coalesced(tensors)
    for numel, each in zip(SIZES, tensors, strict=True):
        assert torch.equal(each, total(world_size, numel))
    outputs = [empty(numel * world_size) for numel in SIZES]
    with dist._coalescing_manager(device=torch.device("cuda"), async_ops=True) as works:
        for numel, each in zip(SIZES, outputs, strict=True):
            dist.all_gather_into_tensor(each, part(rank, numel))
    works.wait()
    for numel, each in zip(SIZES, outputs, strict=True):
        assert torch.equal(each, torch.cat([part(peer, numel) for peer in range(world_size)]))
    mine = [empty(numel) for numel in SIZES]
    with dist._coalescing_manager(device=torch.device("cuda")):
        for numel, each in zip(SIZES, mine, strict=True):
            dist.reduce_scatter_tensor(each, part(rank, numel).repeat(world_size))
    for numel, each in zip(SIZES, mine, strict=True):
        assert torch.equal(each, total(world_size, numel))


def many_at_once(rank: int, world_size: int) -> None:
    lengths = [1 + 37 * step % 301 for step in range(60)]
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        tensors = [part(rank + step, length, dtype) for step, length in enumerate(lengths)]
        gathered = [empty(length * world_size, dtype) for length in lengths]
        scattered = [empty(length, dtype) for length in lengths]
        with dist._coalescing_manager(device=torch.device("cuda"), async_ops=True) as works:
            for whole, each in zip(gathered, tensors, strict=True):
                dist.all_gather_into_tensor(whole, each)
        works.wait()
        with dist._coalescing_manager(device=torch.device("cuda")):
            for mine, whole in zip(scattered, gathered, strict=True):
                dist.reduce_scatter_tensor(mine, whole)
        with dist._coalescing_manager(device=torch.device("cuda")):
            for each in tensors:
                dist.all_reduce(each)
        for step, length in enumerate(lengths):
            parts = [part(peer + step, length, dtype) for peer in range(world_size)]
            assert torch.equal(gathered[step], torch.cat(parts)), (dtype, step)
            assert torch.equal(scattered[step], parts[rank] * world_size), (dtype, step)
            assert torch.equal(tensors[step], sum(parts)), (dtype, step)


def one_kernel(rank: int, world_size: int) -> None:
    """Collectives that are asked for together are one launch."""
    dist.all_reduce(part(rank, 1))  # GPUs that meet try their links
    for numel, kernel in ((100, "::batch_reduce<"), (100_000, "::large_batch_reduce<")):
        tensors = [part(rank + step, numel, torch.bfloat16) for step in range(20)]
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            dist.all_reduce_coalesced(tensors)
            torch.cuda.synchronize()
        launched = [event.name for event in profile.events() if "pccl::kernels" in event.name]
        if is_without_kernels():
            assert not launched
        elif numel == 100 or not meet_in_host():  # through the host, each long one is a launch
            assert [kernel in name for name in launched] == [True], launched


def messages(rank: int, world_size: int) -> None:
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    for numel in SIZES:
        got = empty(numel)
        works = [dist.isend(part(rank, numel), after), dist.irecv(got, before)]
        for work in works:
            work.wait()
        assert torch.equal(got, part(before, numel)), numel
        if rank == 0:
            dist.send(part(7, numel), 1)
            dist.recv(got, 1)
            assert torch.equal(got, part(8, numel))
        elif rank == 1:
            dist.recv(got, 0)
            assert torch.equal(got, part(7, numel))
            dist.send(part(8, numel), 0)
        received = [empty(numel) for _ in range(world_size)]
        sent = [part(10 * rank + peer, numel) for peer in range(world_size)]
        others = [peer for peer in range(world_size) if peer != rank]
        operations = [dist.P2POp(dist.isend, sent[peer], peer) for peer in others]
        operations += [dist.P2POp(dist.irecv, received[peer], peer) for peer in others]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        for peer in others:
            assert torch.equal(received[peer], part(10 * peer + rank, numel)), (numel, peer)


def message_from_anybody(rank: int, world_size: int) -> None:
    got = empty(5)
    if not is_without_kernels():
        with pytest.raises(NotImplementedError, match="from a rank that is named"):
            dist.recv(got)
    elif rank == 0:
        assert dist.recv(got) in range(1, world_size)
        assert torch.equal(got, part(3, 5))
    elif rank == 1:
        dist.send(part(3, 5), 0)


def reductions(rank: int, world_size: int) -> None:
    numel = 1001
    ranks = range(world_size)
    mean = total(world_size, numel) / world_size
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        x = part(rank, numel, dtype)
        dist.all_reduce(x, op=dist.ReduceOp.AVG)
        torch.testing.assert_close(x, mean.to(dtype))
        x = part(rank, numel, dtype)
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(2.0))
        assert torch.equal(x, 2 * total(world_size, numel, dtype))
    for dtype in () if is_without_kernels() else (torch.float8_e4m3fn, torch.float8_e5m2):
        small = [part(peer, numel) % 2 for peer in ranks]
        x = small[rank].to(dtype)
        dist.all_reduce(x)
        assert torch.equal(x.float(), sum(small)), dtype
    flags = part(rank, numel) > 5
    dist.all_reduce(flags, op=dist.ReduceOp.MAX)
    assert torch.equal(flags, sum((part(p, numel) > 5).int() for p in ranks) > 0)
    pairs = torch.complex(part(rank, numel), part(rank + 1, numel))
    dist.all_reduce(pairs)
    expected = torch.complex(total(world_size, numel), sum(part(p + 1, numel) for p in ranks))
    assert torch.equal(pairs, expected)
    for op, fold in ((dist.ReduceOp.MAX, torch.amax), (dist.ReduceOp.MIN, torch.amin)):
        x = part(rank, numel, torch.int32)
        dist.all_reduce(x, op=op)
        assert torch.equal(x, fold(torch.stack([part(p, numel, torch.int32) for p in ranks]), 0))


def layouts(rank: int, world_size: int) -> None:
    def table(of: int) -> torch.Tensor:
        return part(of, 600).reshape(20, 30).t()

    got = torch.zeros(20, 30, device="cuda").t()
    dist.all_gather(listed := [torch.empty_like(got) for _ in range(world_size)], table(rank))
    assert all(torch.equal(each, table(peer)) for peer, each in enumerate(listed))
    x = table(rank) if rank == 0 else got
    work = dist.broadcast(x, 0, async_op=True)
    work.wait()
    assert torch.equal(x, table(0))
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    both = [dist.P2POp(dist.isend, table(rank), after), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    assert torch.equal(got, table(before))
    nothing = empty(0)
    dist.all_reduce(nothing)
    dist.broadcast(nothing, 0)
    dist.all_gather_into_tensor(nothing, empty(0))
    dist.all_to_all_single(nothing, empty(0))
    dist.reduce(nothing, 0)
    dist.gather(nothing, [empty(0) for _ in range(world_size)] if rank == 0 else None)


def objects(rank: int, world_size: int) -> None:
    everything: list[Any] = [None] * world_size
    dist.all_gather_object(everything, {"rank": rank})
    assert everything == [{"rank": peer} for peer in range(world_size)]
    output = [rank, "words"] if rank == 0 else [None, None]
    dist.broadcast_object_list(
        output, src=0, device=torch.device("cuda", torch.cuda.current_device())
    )
    assert output == [0, "words"]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, list(range(10, 10 + world_size)) if rank == 0 else None)
    assert mine == [10 + rank]
    dist.barrier(device_ids=[torch.cuda.current_device()])


PARTS: dict[str, Callable[[int, int], None]] = {
    each.__name__: each
    for each in (
        rooted,
        lists,
        uneven,
        coalesced,
        many_at_once,
        one_kernel,
        messages,
        message_from_anybody,
        reductions,
        layouts,
        objects,
    )
}


def run_part(rank: int, world_size: int, store: Any, name: str) -> None:
    if name == "expandable":
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    chosen = list(PARTS.values()) if name in ("all", "expandable") else [PARTS[name]]
    meet(rank, world_size, store)
    for each in chosen:
        each(rank, world_size)
        torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("name", list(PARTS))
def test_on_all_gpus(name: str) -> None:
    run_gpu_ranks(RANKS, run_part, name)


@pytest.mark.parametrize("world_size", sorted({*range(2, GPUS), 3, 5, 8} - {RANKS}))
def test_other_world_sizes(world_size: int) -> None:
    run_gpu_ranks(world_size, run_part, "all")


@pytest.mark.parametrize("host_kernels", ["0", "1"])
def test_through_host_memory(host_kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCL_GPU_PEER_ACCESS", "0")
    monkeypatch.setenv("PCCL_GPU_HOST_KERNELS", host_kernels)
    run_gpu_ranks(RANKS, run_part, "all")


def gather_by_copy_engines(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    numel = (48 << 20) // 4 // world_size
    whole, swapped = empty(numel * world_size), empty(numel * world_size)
    mine, source = empty(numel), empty(numel * world_size)

    def run() -> None:
        dist.all_gather_into_tensor(whole, mine)
        dist.all_to_all_single(swapped, source)

    def check(step: int) -> None:
        inputs = [part(peer + step, numel * world_size) for peer in range(world_size)]
        assert torch.equal(whole, torch.cat([each[:numel] for each in inputs])), step
        own = slice(rank * numel, (rank + 1) * numel)
        assert torch.equal(swapped, torch.cat([each[own] for each in inputs])), step

    graph = torch.cuda.CUDAGraph()
    for step in range(6):
        source.copy_(part(rank + step, numel * world_size))
        mine.copy_(source[:numel])
        torch.cuda.synchronize()
        if step == 3:
            with torch.cuda.graph(graph):
                run()
        if step >= 3:
            graph.replay()
        else:
            run()
        check(step)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("world_size", sorted({RANKS, 5}))
def test_copy_engines(monkeypatch: pytest.MonkeyPatch, world_size: int) -> None:
    monkeypatch.setenv("PCCL_GPU_COPY_ENGINES", "1")
    run_gpu_ranks(world_size, gather_by_copy_engines)


def with_few_blocks(rank: int, world_size: int, store: Any) -> None:
    """Collectives and messages, by the protocol and in the blocks that the group asks for."""
    meet(rank, world_size, store, options=pccl.Options(max_blocks=8, protocol="direct"))
    for part_of_tests in (rooted, lists, uneven):
        part_of_tests(rank, world_size)
    for nbytes in (4096, 64 << 20):
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"):
            for launch in pccl.explain(kind, nbytes, device="cuda").launches:
                assert (launch.protocol, launch.blocks <= 8) == ("direct", True)
    dist.destroy_process_group()


def with_different_blocks(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store, options=pccl.Options(max_blocks=8 + rank))
    with pytest.raises(pccl.MismatchError, match=r"requests at most \d+ blocks"):
        dist.all_reduce(torch.ones(8, device="cuda"))


@pytest.mark.parametrize("body", [with_few_blocks, with_different_blocks])
def test_preferred_launches(body: Callable[..., None]) -> None:
    run_gpu_ranks(RANKS, body)


def test_tensors_of_expandable_segments() -> None:
    run_gpu_ranks(RANKS, run_part, "expandable")

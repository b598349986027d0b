# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with backend "pccl" and CUDA tensors."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, RANKS, run_gpu_ranks

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)


def collectives(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    ranks = range(world_size)
    for dtype in (torch.bfloat16, torch.float32, torch.int64):
        for numel in (1, 1000, 100_003, 2_000_000):
            total = sum(part(peer, numel, dtype) for peer in ranks)
            for async_op in (False, True):
                x = part(rank, numel, dtype)
                work = dist.all_reduce(x, async_op=async_op)
                if async_op:
                    work.wait()
                assert torch.equal(x, total), (dtype, numel, async_op)
            whole = torch.cat([part(peer, numel, dtype) for peer in ranks])
            gathered = torch.empty_like(whole)
            dist.all_gather_into_tensor(gathered, part(rank, numel, dtype))
            assert torch.equal(gathered, whole)
            listed = [torch.empty(numel, device="cuda", dtype=dtype) for _ in ranks]
            dist.all_gather(listed, part(rank, numel, dtype))
            assert torch.equal(torch.cat(listed), whole)
            mine = torch.empty(numel, device="cuda", dtype=dtype)
            dist.reduce_scatter_tensor(mine, part(rank, numel * world_size, dtype))
            everything = sum(part(peer, numel * world_size, dtype) for peer in ranks)
            assert torch.equal(mine, everything[rank * numel : (rank + 1) * numel])
            swapped = torch.empty(numel * world_size, device="cuda", dtype=dtype)
            dist.all_to_all_single(swapped, part(rank, numel * world_size, dtype))
            pieces = [part(p, numel * world_size, dtype)[rank * numel :][:numel] for p in ranks]
            assert torch.equal(swapped, torch.cat(pieces))
            x = part(rank, numel, dtype)
            dist.broadcast(x, world_size - 1)
            assert torch.equal(x, part(world_size - 1, numel, dtype))
    strided = part(rank, 600).reshape(20, 30).t()
    dist.all_reduce(strided, op=dist.ReduceOp.AVG)
    mean = sum(part(peer, 600) for peer in ranks).reshape(20, 30).t() / world_size
    torch.testing.assert_close(strided, mean)
    on_cpu = torch.full((5,), float(rank))
    dist.all_reduce(on_cpu)
    assert torch.equal(on_cpu, torch.full((5,), float(sum(ranks))))
    dist.barrier()
    dist.destroy_process_group()


def gpus_are_shown(rank: int, world_size: int, store: Any) -> dict[int, str]:
    meet(rank, world_size, store)
    (host,) = pccl.topology.job().hosts
    dist.destroy_process_group()
    return {gpu.rank: gpu.label for gpu in host.topology.gpus if gpu.rank >= 0}


@pytest.mark.skipif(GPUS < 2, reason=f"needs 2 GPUs, this machine has {GPUS}")
def test_the_job_shows_the_gpu_of_each_rank() -> None:
    query = ["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"]
    listed = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()
    shown = run_gpu_ranks(2, gpus_are_shown)
    # nvidia-smi writes domains with four more digits.
    assert shown[0] == shown[1] == {rank: listed[rank][4:].lower() for rank in range(2)}


@pytest.mark.parametrize("world_size", sorted({2, RANKS, 7}))
def test_collectives_of_cuda_tensors(world_size: int) -> None:
    run_gpu_ranks(world_size, collectives)


def overlap(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    other = dist.new_group(list(range(world_size)), backend="pccl")
    ranks = range(world_size)
    side = torch.cuda.Stream()
    for step in range(50):
        numel = 1000 * (step % 7 + 1) ** 3
        x, y, z = (part(rank + step, numel) for _ in range(3))
        torch.cuda.current_stream().synchronize()
        first = dist.all_reduce(x, async_op=True)
        with torch.cuda.stream(side):
            dist.all_reduce(y, group=other)
        dist.all_reduce(z)
        future = first.get_future().then(lambda done: done.value()[0] * 2)
        doubled = future.wait()
        torch.cuda.current_stream().wait_stream(side)
        total = sum(part(peer + step, numel) for peer in ranks)
        for result in (x, y, z, doubled / 2):
            assert torch.equal(result, total), step
    dist.barrier()
    dist.destroy_process_group()


def test_streams_groups_and_futures() -> None:
    run_gpu_ranks(RANKS, overlap)


def own_memory(rank: int, world_size: int, store: Any) -> None:
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    meet(rank, world_size, store)
    device = torch.device("cuda", torch.cuda.current_device())
    backend = dist.group.WORLD._get_backend(device)
    assert backend.supports_tensor_alloc(device)
    total = sum(part(peer, 1 << 20) for peer in range(world_size))
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        pooled = torch.empty(1 << 20, device="cuda")
    allocated = backend.allocate_tensor(1 << 20, dtype=torch.float32, device=device)
    for x in (pooled, allocated):
        for _ in range(2):
            x.copy_(part(rank, 1 << 20))
            dist.all_reduce(x)
            assert torch.equal(x, total)
    torch.cuda.synchronize()
    dist.barrier()
    del pooled, x
    dist.destroy_process_group()


def test_memory_of_the_backend() -> None:
    run_gpu_ranks(RANKS, own_memory)


def capture(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    x = part(rank, 5000)
    y = torch.empty(world_size * 300_000, device="cuda")
    z = part(rank, 300_000)
    for _ in range(2):
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, z)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(x)
        work = dist.all_gather_into_tensor(y, z, async_op=True)
        work.wait()
        y += 1
    for step in range(5):
        x.copy_(part(rank + step, 5000))
        z.copy_(part(rank + step, 300_000))
        graph.replay()
        assert torch.equal(x, sum(part(p + step, 5000) for p in range(world_size)))
        whole = torch.cat([part(p + step, 300_000) for p in range(world_size)])
        assert torch.equal(y, whole + 1)
    dist.barrier()
    dist.destroy_process_group()


def test_graphs() -> None:
    run_gpu_ranks(RANKS, capture)


def capture_everything(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    n, numel = world_size, 40_000
    ranks = range(n)
    source = torch.zeros(n * numel, device="cuda")
    mine = source[:numel]
    gathered, swapped, received = (torch.zeros(n * numel, device="cuda") for _ in range(3))
    summed, shared, rooted = (torch.zeros(numel, device="cuda") for _ in range(3))

    def run() -> None:
        shared.copy_(mine)
        rooted.copy_(mine)
        dist.broadcast(shared, n - 1)
        gathering = dist.all_gather_into_tensor(gathered, mine, async_op=True)
        dist.reduce(rooted, 0)
        dist.reduce_scatter_tensor(summed, source)
        gathering.wait()
        dist.all_to_all_single(swapped, source, [numel] * n, [numel] * n)
        both = [dist.P2POp(dist.isend, mine, (rank + 1) % n)]
        both.append(dist.P2POp(dist.irecv, received[:numel], (rank - 1) % n))
        for work in dist.batch_isend_irecv(both):
            work.wait()

    for _ in range(2):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    for step in range(5):
        source.copy_(part(rank + step, n * numel))
        graph.replay()
        everyone = [part(peer + step, n * numel) for peer in ranks]
        heads = [each[:numel] for each in everyone]
        assert torch.equal(shared, heads[-1])
        assert torch.equal(gathered, torch.cat(heads))
        assert torch.equal(rooted, sum(heads) if rank == 0 else heads[rank])
        own = slice(rank * numel, (rank + 1) * numel)
        assert torch.equal(summed, sum(each[own] for each in everyone))
        assert torch.equal(swapped, torch.cat([each[own] for each in everyone]))
        assert torch.equal(received[:numel], heads[rank - 1])
    dist.barrier()
    dist.destroy_process_group()


def test_graphs_of_all_kinds_together() -> None:
    run_gpu_ranks(RANKS, capture_everything)


def replay_beside_others(rank: int, world_size: int, store: Any, numel: int) -> None:
    meet(rank, world_size, store)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    received, received_in_graph = (torch.zeros(numel, device="cuda") for _ in range(2))
    mine = part(rank, numel)
    reduced, reduced_in_graph, reduced_elsewhere = (mine.clone() for _ in range(3))
    elsewhere = torch.cuda.Stream()

    def swap(into: torch.Tensor) -> list[dist.Work]:
        both = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, into, before)]
        return dist.batch_isend_irecv(both)

    def in_graph() -> None:
        dist.all_reduce(reduced_in_graph)
        works = swap(received_in_graph)
        dist.all_reduce(reduced_in_graph)
        for work in works:
            work.wait()

    in_graph()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        in_graph()
    total = sum(part(peer, numel) for peer in range(world_size))
    for _ in range(10):
        for tensor in (reduced, reduced_in_graph, reduced_elsewhere):
            tensor.copy_(mine)
        received.zero_()
        received_in_graph.zero_()
        torch.cuda.synchronize()
        works = [dist.all_reduce(reduced, async_op=True), *swap(received)]
        graph.replay()
        with torch.cuda.stream(elsewhere):
            dist.all_reduce(reduced_elsewhere)
        for work in works:
            work.wait()
        torch.cuda.synchronize()
        assert torch.equal(reduced, total)
        assert torch.equal(reduced_elsewhere, total)
        assert torch.equal(reduced_in_graph, total * world_size)
        assert torch.equal(received, part(before, numel))
        assert torch.equal(received_in_graph, received)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("numel", [1000, 300_000, 5_000_000])
def test_graphs_replay_beside_calls_in_other_streams(numel: int) -> None:
    run_gpu_ranks(RANKS, replay_beside_others, numel)


def time_works(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    small = part(rank, 1000)
    untimed = dist.all_reduce(small, async_op=True)
    with pytest.raises(RuntimeError, match="pccl:all_reduce was not timed"):
        untimed._get_duration()
    untimed.wait()
    backend._enable_collectives_timing()
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for numel in (1000, 100_003, 4_000_000):
        x = part(rank, numel)
        torch.cuda.synchronize()
        began.record()
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        ended.record()
        torch.cuda.synchronize()
        assert work.is_completed()
        assert 0 < work._get_duration() <= began.elapsed_time(ended)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    in_this_stream = dist.group.WORLD.allreduce([small], options)
    sent = dist.isend(small, (rank + 1) % world_size)
    received = dist.irecv(torch.empty_like(small), (rank - 1) % world_size)
    both = [dist.P2POp(dist.isend, small, (rank + 1) % world_size)]
    both.append(dist.P2POp(dist.irecv, torch.empty_like(small), (rank - 1) % world_size))
    exchanged = dist.batch_isend_irecv(both)
    torch.cuda.synchronize()
    for work in (in_this_stream, sent, received, *exchanged):
        assert work._get_duration() > 0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = dist.all_reduce(small, async_op=True)
        captured.wait()
    graph.replay()
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="was not timed"):
        captured._get_duration()
    if rank == 0:
        store.wait([f"asked/{peer}" for peer in range(1, world_size)])
    late = dist.all_reduce(small, async_op=True)
    if rank != 0:
        with pytest.raises(RuntimeError, match="pccl:all_reduce has not finished yet"):
            late._get_duration()
        store.set(f"asked/{rank}", "")
    torch.cuda.synchronize()
    assert late._get_duration() > 0
    dist.barrier()
    dist.destroy_process_group()


def test_works_have_their_durations() -> None:
    run_gpu_ranks(RANKS, time_works)


def report_works(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    group, reports = dist.group.WORLD, []
    x, y = part(rank, 1000), torch.empty(world_size * 300_000, device="cuda")
    dist.all_reduce(x)  # before there is a hook
    group._register_on_completion_hook(reports.append)
    for _ in range(10):
        dist.all_reduce(x)
        gathering = dist.all_gather_into_tensor(y, y[:300_000].clone(), async_op=True)
        sent = dist.isend(x, (rank + 1) % world_size)
        received = dist.irecv(torch.empty_like(x), (rank - 1) % world_size)
        for work in (gathering, sent, received):
            work.wait()
        dist.all_reduce(torch.ones(3))  # on the CPU
    group._wait_for_pending_works()
    kinds = Counter(report.op_type.name for report in reports)
    assert kinds == {"ALLREDUCE": 20, "_ALLGATHER_BASE": 10, "SEND": 10, "RECV": 10}
    collectives = [report.seq for report in reports if report.op_type.name not in ("SEND", "RECV")]
    assert sorted(collectives) == list(range(2, 32))
    for report in reports:
        spent = report.time_finished - report.time_started
        assert timedelta(0) <= report.active_duration <= spent + timedelta(microseconds=1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(x)
    graph.replay()
    torch.cuda.synchronize()
    group._wait_for_pending_works()
    assert len(reports) == 50  # graphs are not told of
    dist.barrier()
    dist.destroy_process_group()


def test_works_report_to_a_hook() -> None:
    run_gpu_ranks(RANKS, report_works)


def capture_while_a_work_is_watched(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    group, reports = dist.group.WORLD, []
    x, y = part(rank, 1000), torch.zeros(1000, device="cuda")

    def capture(at_the_end: Callable[[], None]) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(torch.cuda.Stream()):
            graph.capture_begin()
            y.add_(1)
            at_the_end()
            graph.capture_end()
            graph.replay()

    def let_rank_0_go() -> None:
        time.sleep(0.2)  # a hundred looks at the work of all ranks but 0
        store.set(f"captured/{rank}", "")

    dist.all_reduce(x)
    y.add_(1)
    capture(lambda: None)  # CUDA loads nothing while a kernel waits for its peers
    torch.cuda.synchronize()
    group._register_on_completion_hook(reports.append)
    if rank == 0:
        store.wait([f"captured/{peer}" for peer in range(1, world_size)])
    late = dist.all_reduce(x, async_op=True)
    if rank != 0:
        capture(let_rank_0_go)
    late.wait()
    group._wait_for_pending_works()
    torch.cuda.synchronize()
    assert y.eq(2 if rank == 0 else 3).all()
    assert [report.seq for report in reports] == [2]
    assert rank == 0 or reports[0].active_duration > timedelta(seconds=0.1)
    dist.barrier()
    dist.destroy_process_group()


def test_watching_works_disturbs_no_capture() -> None:
    run_gpu_ranks(RANKS, capture_while_a_work_is_watched)


def abort_what_is_watched(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    group, reports = dist.group.WORLD, []
    x = part(rank, 1000)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    group._register_on_completion_hook(reports.append)
    if rank == 0:
        dist.all_reduce(x, async_op=True)  # the others do not come
        group._get_backend(torch.device("cuda")).abort()
        group._wait_for_pending_works()
        assert len(reports) == 1
    store.add("ended", 1)
    while store.add("ended", 0) < world_size:
        time.sleep(0.01)
    dist.destroy_process_group()


def test_hooks_are_called_for_works_that_are_aborted() -> None:
    run_gpu_ranks(2, abort_what_is_watched, timeout=60)

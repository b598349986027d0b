# SPDX-License-Identifier: Apache-2.0
"""Work objects: futures and callbacks, order, many at once, profiles, sequence numbers."""

import json
import tempfile
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from support.launch import BACKEND, not_on_gloo, run_ranks
from support.torch_names import HAS_WORK_EXCEPTION, all_gather_single, reduce_scatter_single

pytestmark = pytest.mark.multiproc


def backend() -> dist.Backend:
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def asynchronous_works(world_size: int) -> dict[str, Callable[[], dist.Work]]:
    """One asynchronous call of every kind of collective."""
    x, whole = torch.ones(4), torch.ones(4 * world_size)
    rank = dist.get_rank()
    several = [torch.empty(4) for _ in range(world_size)]
    on_root = rank == 0
    return {
        "all_reduce": lambda: dist.all_reduce(x.clone(), async_op=True),
        "reduce": lambda: dist.reduce(x.clone(), 0, async_op=True),
        "broadcast": lambda: dist.broadcast(x.clone(), 0, async_op=True),
        "all_gather": lambda: dist.all_gather(several, x, async_op=True),
        "all_gather_single": lambda: all_gather_single(whole.clone(), x, async_op=True),
        "gather": lambda: dist.gather(x, several if on_root else None, async_op=True),
        "scatter": lambda: dist.scatter(
            x.clone(), [x] * world_size if on_root else None, async_op=True
        ),
        "reduce_scatter": lambda: dist.reduce_scatter(x.clone(), several, async_op=True),
        "reduce_scatter_single": lambda: reduce_scatter_single(x, whole, async_op=True),
        "all_to_all": lambda: dist.all_to_all(
            [torch.empty(4) for _ in several], several, async_op=True
        ),
        "all_to_all_single": lambda: dist.all_to_all_single(whole.clone(), whole, async_op=True),
        "barrier": lambda: dist.barrier(async_op=True),
    }


def every_work_completes(rank: int, world_size: int) -> None:
    for name, start in asynchronous_works(world_size).items():
        work = start()
        assert work.wait(), name
        assert work.is_completed(), name
        assert work.is_success(), name
        if HAS_WORK_EXCEPTION:
            assert work.exception() is None, name


def every_work_has_a_future(rank: int, world_size: int) -> None:
    for name, start in asynchronous_works(world_size).items():
        future = start().get_future()
        value = future.wait()
        assert future.done(), name
        assert all(isinstance(tensor, Tensor) for tensor in value), name


def polling_makes_progress(rank: int, world_size: int) -> None:
    """Nobody waits: the background must carry the operation to its end."""
    x = torch.ones(100_000)
    work = dist.all_reduce(x, async_op=True)
    while not work.is_completed():
        threading.Event().wait(0.001)
    assert x[0].item() == world_size


def callbacks_run_and_chain(rank: int, world_size: int) -> None:
    x = torch.full((3,), float(rank))
    future = dist.all_reduce(x, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    total = sum(range(world_size))
    assert torch.equal(doubled.wait(), torch.full((3,), 2.0 * total))
    late = future.then(lambda done: done.value()[0] + 1)  # the future is done already
    assert torch.equal(late.wait(), torch.full((3,), 1.0 + total))


def callbacks_may_communicate(rank: int, world_size: int) -> None:
    """A callback that waits for another collective must not stop what carries it out."""

    def again(done: torch.futures.Future[list[Tensor]]) -> Tensor:
        work = dist.all_reduce(done.value()[0], async_op=True)
        return work.get_future().wait()[0]

    x = torch.ones(5)
    assert dist.all_reduce(x, async_op=True).get_future().then(again).wait()[0] == world_size**2


def results_hold_the_outputs(rank: int, world_size: int) -> None:
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    (output,) = work.result()
    assert output.data_ptr() == x.data_ptr()


def collectives_keep_their_order(rank: int, world_size: int) -> None:
    """On one tensor, in different kinds: any other order gives another number."""
    x = torch.full((1000,), float(rank + 1))
    works = [
        dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True),
        dist.all_reduce(x, dist.ReduceOp.SUM, async_op=True),
        dist.broadcast(x, 0, async_op=True),
        dist.all_reduce(x, dist.ReduceOp.PRODUCT, async_op=True),
    ]
    works[-1].wait()
    assert all(work.is_completed() for work in works)
    expected = float(world_size * world_size) ** world_size
    assert torch.equal(x, torch.full((1000,), expected))


def synchronous_after_asynchronous(rank: int, world_size: int) -> None:
    x = torch.ones(10_000)
    pending = dist.all_reduce(x, async_op=True)
    y = torch.ones(1)
    dist.all_reduce(y)
    pending.wait()
    assert x[0].item() == y.item() == world_size


def a_hundred_in_flight(rank: int, world_size: int) -> None:
    tensors = [torch.full((1 + 37 * number,), float(number)) for number in range(100)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    for number, tensor in enumerate(tensors):
        assert torch.equal(tensor, torch.full_like(tensor, float(number * world_size)))


def tensors_may_be_dropped(rank: int, world_size: int) -> None:
    """The operation keeps its memory alive when nobody else does."""
    works = [
        all_gather_single(torch.empty(10_000 * world_size), torch.ones(10_000), async_op=True)
        for _ in range(20)
    ]
    for work in works:
        work.wait()


def sequence_numbers_grow(rank: int, world_size: int) -> None:
    """By one with every collective, from 0; messages are not counted."""
    numbers = [backend()._get_sequence_number_for_group()]
    for start in asynchronous_works(world_size).values():
        start().wait()
        numbers.append(backend()._get_sequence_number_for_group())
    assert numbers == list(range(len(asynchronous_works(world_size)) + 1))
    if world_size > 1 and rank < 2:
        (dist.send if rank == 0 else dist.recv)(torch.ones(1), 1 - rank)
    assert backend()._get_sequence_number_for_group() == numbers[-1]


PROFILED = {
    "all_reduce": "all_reduce",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "all_gather": "all_gather",
    "all_gather_single": "_all_gather_base",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "_reduce_scatter_base",
    "all_to_all": "all_to_all",
    "all_to_all_single": "all_to_all",
    "barrier": "barrier",
}


def profiles_name_every_collective(rank: int, world_size: int) -> None:
    for name, start in asynchronous_works(world_size).items():
        with torch.autograd.profiler.profile(record_shapes=True) as profile:
            start().wait()
        events = [e for e in profile.function_events if e.name == f"{BACKEND}:{PROFILED[name]}"]
        assert len(events) == 1, (name, [e.name for e in profile.function_events])
        assert events[0].is_async, name
        if name == "all_reduce":
            assert events[0].input_shapes == [[4]]


def profiles_name_messages(rank: int, world_size: int) -> None:
    peer = 1 - rank
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        if rank == 0:
            dist.send(torch.ones(3, 2), peer)
            dist.send(torch.ones(2), peer)
        else:
            dist.recv(torch.ones(3, 2), peer)
            dist.recv(torch.ones(2))
    expected = ["send", "send"] if rank == 0 else ["recv", "recvAnySource"]
    names = [e.name for e in profile.function_events if e.name.startswith(f"{BACKEND}:")]
    assert names == [f"{BACKEND}:{name}" for name in expected]


def communication(profile: torch.profiler.profile) -> list[dict[str, Any]]:
    """Return what a trace says of each operation, as analyzers of traces read it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        profile.export_chrome_trace(trace.name)
        events = json.loads(Path(trace.name).read_text())["traceEvents"]
    return [event["args"] for event in events if event.get("name") == "record_param_comms"]


def profiles_have_the_sizes(rank: int, world_size: int) -> None:
    pair = dist.new_group([0, world_size - 1])
    x, blocks = torch.ones(6), torch.ones(3 * world_size, dtype=torch.int64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(x)
        reduce_scatter_single(torch.ones(3, dtype=torch.int64), blocks)
        if rank in (0, world_size - 1):
            dist.broadcast(x, 0, group=pair)
        if rank == 0:
            dist.send(x, world_size - 1)
        if rank == world_size - 1:
            dist.recv(x, 0)
    whole, scattered, *of_pair = communication(profile)
    assert whole["Collective name"] == "all_reduce"
    assert (whole["dtype"], whole["In msg nelems"], whole["Out msg nelems"]) == ("Float", 6, 6)
    assert (whole["Rank"], whole["Group size"]) == (rank, world_size)
    assert whole["Process Group Description"] == "default_pg"
    assert (scattered["dtype"], scattered["In msg nelems"]) == ("Long", blocks.numel())
    assert scattered["Out msg nelems"] == 3
    if rank in (0, world_size - 1):
        narrow, message = of_pair
        assert (narrow["Collective name"], narrow["Group size"]) == ("broadcast", 2)
        assert narrow["Process Group Ranks"] == f"[0, {world_size - 1}]"
        assert message["Collective name"] == ("send" if rank == 0 else "recv")
        assert message["Dst Rank" if rank == 0 else "Src Rank"] == world_size - 1 - rank
    else:
        assert not of_pair


def waits_time_out(rank: int, world_size: int) -> None:
    """The wait gives up, the operation does not: it completes once the others come."""
    x = torch.ones(1)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(RuntimeError, match=r"(?i)time|timed"):
            work.wait(timedelta(milliseconds=50))
    store = dist.distributed_c10d._get_default_store()
    store.set("waited", "") if rank == 0 else store.wait(["waited"])
    if rank != 0:
        dist.all_reduce(x)
    else:
        work.wait()
    assert x.item() == world_size


ON_EVERY_BACKEND = [
    polling_makes_progress,
    callbacks_run_and_chain,
    callbacks_may_communicate,
    results_hold_the_outputs,
    a_hundred_in_flight,
    synchronous_after_asynchronous,
    tensors_may_be_dropped,
]
BEYOND_GLOO = [
    every_work_completes,
    every_work_has_a_future,
    collectives_keep_their_order,
    sequence_numbers_grow,
    profiles_name_every_collective,
    profiles_have_the_sizes,
    waits_time_out,
]


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("check", ON_EVERY_BACKEND)
def test_work(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@not_on_gloo("lacks these")
@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", BEYOND_GLOO)
def test_work_beyond_gloo(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


def test_profiled_messages() -> None:
    run_ranks(profiles_name_messages, 2)

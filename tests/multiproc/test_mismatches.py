# SPDX-License-Identifier: Apache-2.0
"""Ranks that call different things are told so, all of them, by name, and none dies of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist

from support.launch import new_store, not_on_gloo, run_ranks

if TYPE_CHECKING:
    import numpy as np

    import pccl

pytestmark = [pytest.mark.multiproc, not_on_gloo("hangs, dies or passes here")]
TIMEOUT = timedelta(seconds=80)
PATIENCE_S = 180

Call = Callable[[dist.ProcessGroup, bool], Any]


def operation(group: dist.ProcessGroup, odd: bool) -> None:
    x = torch.ones(8)
    dist.broadcast(x, 0, group=group) if odd else dist.all_reduce(x, group=group)


def element_type(group: dist.ProcessGroup, odd: bool) -> None:
    dist.all_reduce(torch.ones(8, dtype=torch.float64 if odd else torch.float32), group=group)


def count(group: dist.ProcessGroup, odd: bool) -> None:
    dist.all_reduce(torch.ones(9 if odd else 8), group=group)


def large_count(group: dist.ProcessGroup, odd: bool) -> None:
    dist.all_reduce(torch.ones((1 << 20) + odd), group=group)


def root(group: dist.ProcessGroup, odd: bool) -> None:
    dist.broadcast(torch.ones(8), 1 if odd else 0, group=group)


def reduction(group: dist.ProcessGroup, odd: bool) -> None:
    dist.all_reduce(torch.ones(8), dist.ReduceOp.MAX if odd else dist.ReduceOp.SUM, group=group)


def split_sizes(group: dist.ProcessGroup, odd: bool) -> None:
    """Everybody sends 4 elements to each rank; the odd one expects 5 of one of them."""
    n = dist.get_world_size()
    shares = [4] * n
    if odd:
        shares[0 if dist.get_rank() > 0 else 1] = 5
    out = torch.empty(sum(shares))
    dist.all_to_all_single(out, torch.ones(4 * n), shares, [4] * n, group=group)


def split_sizes_given(group: dist.ProcessGroup, odd: bool) -> None:
    """The same ones that the others mean."""
    n = dist.get_world_size()
    sizes = [[4] * n] * 2 if odd else []
    dist.all_to_all_single(torch.empty(4 * n), torch.ones(4 * n), *sizes, group=group)


def gathered_counts(group: dist.ProcessGroup, odd: bool) -> None:
    n = dist.get_world_size()
    x = torch.ones(9 if odd else 8)
    dist.all_gather([torch.empty_like(x) for _ in range(n)], x, group=group)


def missing_call(group: dist.ProcessGroup, odd: bool) -> None:
    if not odd:
        dist.all_reduce(torch.ones(3), group=group)
    dist.all_reduce(torch.ones(5), group=group)


def order_of_groups(group: dist.ProcessGroup, odd: bool) -> None:
    """Each waits in another group for the other."""
    other = dist.new_group(timeout=TIMEOUT)
    for one in [other, group] if odd else [group, other]:
        dist.all_reduce(torch.ones(3), group=one)


MISMATCHES: list[Call] = [
    operation,
    element_type,
    count,
    large_count,
    root,
    reduction,
    split_sizes,
    split_sizes_given,
    gathered_counts,
    missing_call,
    order_of_groups,
]
LONGEST_S = TIMEOUT.total_seconds() / 4  # which plays no part in this


def provoke(mismatch: Call, odd: bool) -> Exception | None:
    group = dist.new_group(timeout=TIMEOUT)
    found = None
    begun = time.monotonic()
    try:
        mismatch(group, odd)
        dist.barrier(group=group)  # who only gives may hear of it in its next collective
    except Exception as error:
        found = error
    assert time.monotonic() - begun < LONGEST_S, (mismatch.__name__, found)
    dist.barrier()  # nobody leaves before all have seen it
    dist.destroy_process_group(group)
    return found


def all_are_notified(rank: int, world_size: int) -> None:
    import pccl

    for mismatch in MISMATCHES:
        for odd in {0, world_size - 1}:
            error = provoke(mismatch, rank == odd)
            where = f"{mismatch.__name__}, odd rank {odd}"
            assert isinstance(error, pccl.MismatchError), (where, error)
            assert isinstance(error, dist.DistBackendError), where
            assert error.rank is not None, (where, error)
            assert f"rank {error.rank}" in str(error), (where, error)
            assert odd in (rank, error.rank) or f"rank {odd}" in str(error), (where, error)
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [world_size] * 3


@pytest.mark.parametrize("setting", ["shm", "tcp", "mixed"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_all_ranks_report_a_mismatch(setting: str, world_size: int) -> None:
    arguments = (all_are_notified, setting)
    run_ranks(in_setting, world_size, backend=None, arguments=arguments, timeout_s=PATIENCE_S)


def in_setting(
    rank: int, world_size: int, function: Callable[[int, int], None], setting: str
) -> None:
    if setting == "tcp" or (setting == "mixed" and rank == world_size - 1):
        os.environ["PCCL_TRANSPORTS"] = "tcp"
    dist.init_process_group("pccl", store=new_store(), rank=rank, world_size=world_size)
    function(rank, world_size)
    dist.destroy_process_group()


def orders_from_several_threads(rank: int, world_size: int) -> None:
    """Another thread might still make the missing call: the timeout tells, and then all of it."""
    import pccl

    first, second = (dist.new_group(timeout=timedelta(seconds=10)) for _ in range(2))
    thread = threading.Thread(target=dist.barrier)
    thread.start()
    thread.join()
    dist.barrier()
    odd = rank == world_size - 1
    with pytest.raises(pccl.MismatchError, match="different orders") as caught:
        dist.all_reduce(torch.ones(3), group=second if odd else first)
    names = dist.distributed_c10d._world.pg_names
    for group in (first, second):  # who is where
        assert f"of group {names[group]}" in str(caught.value), caught.value
    last = world_size - 1
    assert odd or caught.value.rank == last or f"rank {last}" in str(caught.value), caught.value
    dist.barrier()


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_orders_from_several_threads_are_named(transports: str) -> None:
    environment = {"PCCL_TRANSPORTS": transports}
    run_ranks(orders_from_several_threads, 3, environment=environment)


def orders_of_asynchronous_calls(rank: int, world_size: int) -> None:
    """Groups do not wait for one another: this is no mismatch, and ends well."""
    groups = [dist.new_group(timeout=TIMEOUT) for _ in range(3)]
    for turn in range(20):
        order = [groups[(rank + turn + i) % len(groups)] for i in range(len(groups))]
        calls = []
        for group in order:
            x = torch.full((1000,), float(rank))
            calls.append((x, dist.all_reduce(x, group=group, async_op=True)))
        for x, work in reversed(calls) if turn % 2 else calls:
            work.wait()
            assert (x == world_size * (world_size - 1) / 2).all()
    dist.barrier()


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_asynchronous_calls_may_come_in_any_order_of_groups(transports: str) -> None:
    environment = {"PCCL_TRANSPORTS": transports}
    run_ranks(orders_of_asynchronous_calls, 3, environment=environment)


def ranks_meet_at(store: dist.Store, rank: int, world_size: int) -> Callable[[str], None]:
    """Return a barrier that needs no group: all ranks name the same place."""

    def meet(where: str) -> None:
        store.set(f"{where}/{rank}", "")
        store.wait([f"{where}/{other}" for other in range(world_size)])

    return meet


def call_and_meet(
    comm: pccl.Communicator, call: Callable[[pccl.Communicator, bool], object], odd: bool
) -> None:
    """Who only gives may hear of it in its next collective."""
    call(comm, odd)
    comm.barrier()


def over_numpy(rank: int, world_size: int, setting: str) -> None:
    """The same, through a Communicator; of each kind in a group of its own."""
    import numpy as np

    import pccl

    is_tcp = setting == "tcp" or (setting == "mixed" and rank == world_size - 1)
    store = new_store()
    meet = ranks_meet_at(store, rank, world_size)

    def float32(count: int = 8) -> np.ndarray:
        return np.ones(count, dtype=np.float32)

    def blocks(odd: bool) -> list[np.ndarray]:
        """Of all_to_all: 4 elements for each rank, but for one who expects 5 of another."""
        return [float32(5 if odd and peer == (rank == 0) else 4) for peer in range(world_size)]

    calls: dict[str, Callable[[pccl.Communicator, bool], object]] = {
        "operation": lambda c, odd: c.broadcast(float32()) if odd else c.all_reduce(float32()),
        "type": lambda c, odd: c.all_reduce(np.ones(8, np.float64 if odd else np.float32)),
        "count": lambda c, odd: c.all_reduce(float32(9 if odd else 8)),
        "root": lambda c, odd: c.broadcast(float32(), root=int(odd)),
        "reduction": lambda c, odd: c.all_reduce(float32(), op="max" if odd else "sum"),
        "split sizes": lambda c, odd: c.all_to_all(blocks(odd), blocks(False)),
        "lists": lambda c, odd: (
            c.all_to_all(blocks(False), blocks(False))
            if odd
            else c.all_to_all(float32(4 * world_size), float32(4 * world_size))
        ),
        "missing call": lambda c, odd: [c.all_reduce(float32(n)) for n in ([5] if odd else [3, 5])],
    }
    for kind, call in calls.items():
        for odd in {0, world_size - 1}:
            comm = pccl.Communicator(
                rank=rank,
                world_size=world_size,
                rendezvous=dist.PrefixStore(f"{kind}/{odd}", store),
                timeout=TIMEOUT.total_seconds(),
                transports="tcp" if is_tcp else "",
            )
            meet(f"made/{kind}/{odd}")  # who still joins cannot join what is over
            with pytest.raises(pccl.MismatchError) as caught:
                call_and_meet(comm, call, rank == odd)
            assert f"rank {caught.value.rank}" in str(caught.value), (kind, odd)
            meet(f"seen/{kind}/{odd}")
            comm.shutdown()


def two_roots_at_the_end(rank: int, world_size: int, setting: str) -> None:
    """Roots only give, and nothing follows that could tell them: the end of the group does."""
    import numpy as np

    import pccl

    is_tcp = setting == "tcp" or (setting == "mixed" and rank == world_size - 1)
    store = new_store()
    meet = ranks_meet_at(store, rank, world_size)

    for odd in range(1, world_size):
        comm = pccl.Communicator(
            rank=rank,
            world_size=world_size,
            rendezvous=dist.PrefixStore(str(odd), store),
            timeout=TIMEOUT.total_seconds(),
            transports="tcp" if is_tcp else "",
            algorithm=f"broadcast={'shm_one_shot' if setting == 'shm' else 'one_shot'}",
        )
        comm.broadcast(np.ones(8, dtype=np.float32), root=odd if rank == odd else 0)
        meet(f"called/{odd}")
        time.sleep(0.3)  # what is on its way arrives
        for is_first in (True, False):
            if is_first == (rank == odd):
                with pytest.raises(pccl.MismatchError, match="root") as caught:
                    comm.shutdown()
                assert f"rank {caught.value.rank}" in str(caught.value), odd
                assert odd in (rank, caught.value.rank) or f"rank {odd}" in str(caught.value)
            meet(f"left/{odd}/{is_first}")
        comm.shutdown()


@pytest.mark.parametrize("setting", ["shm", "tcp", "mixed"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_two_roots_are_named_at_the_end(setting: str, world_size: int) -> None:
    arguments = (setting,)
    run_ranks(
        two_roots_at_the_end, world_size, backend=None, arguments=arguments, timeout_s=PATIENCE_S
    )


@pytest.mark.parametrize("setting", ["shm", "tcp", "mixed"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_all_ranks_report_it_over_numpy(setting: str, world_size: int) -> None:
    arguments = (setting,)
    run_ranks(over_numpy, world_size, backend=None, arguments=arguments, timeout_s=PATIENCE_S)

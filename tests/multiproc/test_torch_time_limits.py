# SPDX-License-Identifier: Apache-2.0
"""Timeouts of process groups: as long as a timedelta can be, and negative ones."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import pccl
from support.launch import new_store, run_ranks

pytestmark = pytest.mark.multiproc

LATE_S = 0.3
# In microseconds, as torch's bindings count a while, the last two are more than an int64 holds.
NO_LIMIT = [timedelta(days=1_000_000), timedelta(days=200_000_000), timedelta.max]


def summed(group: dist.ProcessGroup, timeout: timedelta) -> float:
    x = torch.ones(3)
    options = dist.AllreduceOptions()
    options.timeout = timeout
    work = group.allreduce([x], options)
    work.wait(timeout)
    return float(x[0])


def run_without_limit(rank: int, size: int, timeout: timedelta) -> None:
    time.sleep(LATE_S * rank)
    dist.init_process_group("pccl", store=new_store(), rank=rank, world_size=size, timeout=timeout)
    world = dist.group.WORLD
    assert world is not None
    time.sleep(LATE_S * rank)
    assert summed(world, timeout) == size
    other = dist.new_group(timeout=timeout)
    time.sleep(LATE_S * rank)
    dist.barrier(other)
    pccl.torch.monitored_barrier(timeout=timeout)
    assert len(pccl.health(timeout=timeout)) == size
    world.set_timeout(timeout)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("timeout", NO_LIMIT, ids=str)
def test_a_group_without_limit_waits(timeout: timedelta) -> None:
    run_ranks(run_without_limit, 2, arguments=[timeout], backend=None)


def refuse_negative_ones(rank: int, size: int) -> None:
    world = dist.group.WORLD
    assert world is not None
    wrong = timedelta(seconds=-5)
    for call in (
        lambda: summed(world, wrong),
        lambda: dist.new_group(timeout=wrong),
        lambda: pccl.torch.monitored_barrier(timeout=wrong),
        lambda: pccl.health(timeout=wrong),
        lambda: world.set_timeout(wrong),
    ):
        with pytest.raises(ValueError, match="timeout is -5000 ms"):
            call()
        dist.barrier()
    work = dist.all_reduce(torch.ones(3), async_op=True)
    assert work is not None
    if not work.is_completed():
        with pytest.raises(ValueError, match="timeout is -5000 ms"):
            work.wait(wrong)
    work.wait()


def test_negative_ones_are_refused_by_name() -> None:
    run_ranks(refuse_negative_ones, 2)


def begin_with_a_negative_one(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match="timeout is -1000 ms"):
        dist.init_process_group(
            "pccl",
            store=new_store(),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=-1),
        )


def test_a_group_does_not_begin_with_a_negative_one() -> None:
    run_ranks(begin_with_a_negative_one, 2, backend=None)

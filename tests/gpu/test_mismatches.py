# SPDX-License-Identifier: Apache-2.0
"""Ranks that call different collectives with CUDA tensors are told; they do not wait in vain."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet
from tests.gpu.ranks import GPUS, run_gpu_ranks

import pccl

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

RANKS = 3
LIMIT = 10.0  # seconds until every rank knows

Call = Callable[[dist.ProcessGroup], Any]


class Mismatch(NamedTuple):
    """What all ranks but the last call, and what that one calls; each with text of the error."""

    ours: tuple[Call, str]
    theirs: tuple[Call, str]


def cuda(numel: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(numel, dtype=dtype, device="cuda")


def all_reduce(numel: int, dtype: torch.dtype = torch.float32, op: Any = dist.ReduceOp.SUM) -> Call:
    return lambda group: dist.all_reduce(cuda(numel, dtype), op, group=group)


def broadcast(numel: int, root: int) -> Call:
    return lambda group: dist.broadcast(cuda(numel), root, group=group)


def all_gather(numel: int) -> Call:
    return lambda group: dist.all_gather_into_tensor(cuda(RANKS * numel), cuda(numel), group=group)


def all_to_all(numel: int, *, has_splits: bool) -> Call:
    splits = [numel] * RANKS if has_splits else None
    return lambda group: dist.all_to_all_single(
        cuda(RANKS * numel), cuda(RANKS * numel), splits, splits, group=group
    )


def together(count: int) -> Call:
    def call(group: dist.ProcessGroup) -> None:
        with dist._coalescing_manager(group, device=torch.device("cuda")):
            for _ in range(count):
                dist.all_reduce(cuda(1000), group=group)

    return call


SMALL = (all_reduce(1000), r"all_reduce #2 \(sum of 1000 float32\)")
LARGE = (all_reduce(3_000_000), r"all_reduce #2 \(sum of 3000000 float32\)")
DISPUTES = {
    "type": Mismatch(SMALL, (all_reduce(1000, torch.bfloat16), "sum of 1000 bfloat16")),
    "operator": Mismatch(SMALL, (all_reduce(1000, op=dist.ReduceOp.MAX), "max of 1000 float32")),
    "size": Mismatch(SMALL, LARGE),
    "kind": Mismatch(SMALL, (broadcast(1000, 0), r"broadcast #2 \(1000 float32, root 0\)")),
    "root": Mismatch((broadcast(3_000_000, 0), "root 0"), (broadcast(3_000_000, 1), "root 1")),
    "large": Mismatch(LARGE, (all_gather(3_000_000), r"all_gather #2 \(3000000 float32\)")),
    "splits": Mismatch(
        (all_to_all(1000, has_splits=False), r"all_to_all #2"),
        (all_to_all(1000, has_splits=True), "with split sizes or lists"),
    ),
    "together": Mismatch((together(2), "all_reduce #2"), (together(3), "other calls together")),
}


def call_twice(call: Call, group: dist.ProcessGroup) -> None:
    """Call, and call what hears at once how that has ended."""
    call(group)
    torch.cuda.synchronize()
    dist.all_reduce(cuda(8), group=group)


def mismatch(rank: int, world_size: int, store: Any) -> float:
    meet(rank, world_size, store)
    longest = 0.0
    for each in DISPUTES.values():
        group = dist.new_group()
        dist.all_reduce(cuda(8), group=group)
        torch.cuda.synchronize()
        dist.barrier()
        mine = each.theirs if rank == world_size - 1 else each.ours
        began = time.monotonic()
        with pytest.raises(pccl.MismatchError, match="ranks disagree") as reported:
            call_twice(mine[0], group)
        longest = max(longest, time.monotonic() - began)
        for text in (each.ours[1], each.theirs[1], f"rank {world_size - 1}"):
            reported.match(text)
        dist.barrier()
    dist.destroy_process_group()
    return longest


def test_ranks_that_disagree_get_both_calls() -> None:
    spent = run_gpu_ranks(RANKS, mismatch)
    assert all(each < LIMIT for each in spent), spent

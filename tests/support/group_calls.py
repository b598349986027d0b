# SPDX-License-Identifier: Apache-2.0
"""Calls of torch.distributed, with results checked: what a job may do over some transport."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from support.reference import assert_reduces, seeded_input
from support.torch_names import all_gather_single, reduce_scatter_single

LARGE = 150_001  # elements: several pieces and a remainder
COUNTS = (1, 1000, LARGE)


def inputs_of(dtype: torch.dtype, count: int, world_size: int) -> list[Tensor]:
    return [seeded_input(dtype, count, rank) for rank in range(world_size)]


def reductions(rank: int, world_size: int) -> None:
    for dtype, op, name in (
        (torch.float32, dist.ReduceOp.SUM, "sum"),
        (torch.bfloat16, dist.ReduceOp.MAX, "max"),
        (torch.int64, dist.ReduceOp.PRODUCT, "product"),
    ):
        for number, count in enumerate(COUNTS):
            inputs = inputs_of(dtype, count, world_size)
            everywhere = inputs[rank].clone()
            dist.all_reduce(everywhere, op)
            assert_reduces(everywhere, name, inputs, "all_reduce")
            root = number % world_size
            at_root = inputs[rank].clone()
            dist.reduce(at_root, root, op)
            if rank == root:
                assert_reduces(at_root, name, inputs, "reduce")
    inputs = inputs_of(torch.int32, 3000 * world_size, world_size)
    block = torch.empty(3000, dtype=torch.int32)
    reduce_scatter_single(block, inputs[rank].clone())
    mine = [tensor.chunk(world_size)[rank] for tensor in inputs]
    assert_reduces(block, "sum", mine, "reduce_scatter")


def movements(rank: int, world_size: int) -> None:
    for count in COUNTS:
        inputs = inputs_of(torch.float32, count, world_size)
        root = count % world_size
        gathered = torch.empty(count * world_size)
        all_gather_single(gathered, inputs[rank])
        assert torch.equal(gathered, torch.cat(inputs))
        cast = inputs[rank].clone()
        dist.broadcast(cast, root)
        assert torch.equal(cast, inputs[root])
        at_root = [torch.empty(count) for _ in inputs] if rank == root else None
        dist.gather(inputs[rank], at_root, dst=root)
        if at_root is not None:
            assert all(torch.equal(a, b) for a, b in zip(at_root, inputs, strict=True))
        block = torch.empty(count)
        dist.scatter(block, inputs if rank == root else None, src=root)
        assert torch.equal(block, inputs[rank])
    blocks = torch.arange(world_size * 700).view(world_size, 700) + 10_000 * rank
    exchanged = torch.empty_like(blocks)
    dist.all_to_all_single(exchanged, blocks)
    expected = [
        torch.arange(rank * 700, (rank + 1) * 700) + 10_000 * peer for peer in range(world_size)
    ]
    assert torch.equal(exchanged, torch.stack(expected))
    dist.barrier()


def messages(rank: int, world_size: int) -> None:
    """Around a ring, in both directions at once, of several sizes and tags."""
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    for tag, count in enumerate((0, 1, 24, 5000, LARGE)):
        sent = [seeded_input(torch.float32, count, 10 * rank + way) for way in range(2)]
        received = [torch.empty(count), torch.empty(count)]
        works = [
            dist.isend(sent[0], after, tag=2 * tag),
            dist.isend(sent[1], before, tag=2 * tag + 1),
            dist.irecv(received[1], after, tag=2 * tag + 1),
            dist.irecv(received[0], before, tag=2 * tag),
        ]
        for work in works:
            work.wait()
        assert torch.equal(received[0], seeded_input(torch.float32, count, 10 * before))
        assert torch.equal(received[1], seeded_input(torch.float32, count, 10 * after + 1))


def all_of_it(rank: int, world_size: int) -> None:
    reductions(rank, world_size)
    movements(rank, world_size)
    messages(rank, world_size)

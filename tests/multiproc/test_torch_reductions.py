# SPDX-License-Identifier: Apache-2.0
"""Reductions through torch: every operator, type and size against numpy on one process."""

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from support.launch import BACKEND, not_on_gloo, run_ranks
from support.reference import (
    COMPLEX,
    FLOAT8,
    FLOATS,
    INTEGERS,
    assert_reduces,
    ops_for,
    reduced,
    seeded_input,
)
from support.torch_names import reduce_scatter_single

COUNTS = (0, 1, 17, 1000)
LARGE = 300_007  # several chunks and a remainder
OPS = {name: getattr(dist.ReduceOp, name.upper()) for name in ops_for(torch.int32)}
TYPES = (*FLOATS, *COMPLEX, *INTEGERS, torch.bool)
ON_GLOO = (torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64)
pytestmark = pytest.mark.multiproc


def cases() -> Iterator[tuple[str, torch.dtype, int]]:
    """Every operator, type and size that the backend under test has."""
    for dtype in TYPES if BACKEND != "gloo" else ON_GLOO:
        for op in ops_for(dtype) if BACKEND != "gloo" else ("sum", "product", "min", "max"):
            yield from ((op, dtype, count) for count in COUNTS)


def every_input(dtype: torch.dtype, count: int, world_size: int) -> list[Tensor]:
    return [seeded_input(dtype, count, rank) for rank in range(world_size)]


def all_reduces(rank: int, world_size: int) -> None:
    for op, dtype, count in cases():
        inputs = every_input(dtype, count, world_size)
        mine = inputs[rank].clone()
        dist.all_reduce(mine, OPS[op])
        assert_reduces(mine, op, inputs, "all_reduce")


def all_reduces_large(rank: int, world_size: int) -> None:
    half = () if BACKEND == "gloo" else (torch.bfloat16,)  # Gloo rounds after every step
    for dtype in (torch.float32, torch.int64, *half):
        inputs = every_input(dtype, LARGE, world_size)
        mine = inputs[rank].clone()
        dist.all_reduce(mine)
        assert_reduces(mine, "sum", inputs, "all_reduce")


def reduces_to_a_root(rank: int, world_size: int) -> None:
    for number, (op, dtype, count) in enumerate(cases()):
        inputs = every_input(dtype, count, world_size)
        mine, root = inputs[rank].clone(), number % world_size
        dist.reduce(mine, root, OPS[op])
        if rank == root:
            assert_reduces(mine, op, inputs, "reduce")


def blocks_for(peer: int, inputs: list[Tensor], world_size: int) -> list[Tensor]:
    return [tensor.chunk(world_size)[peer] for tensor in inputs]


def reduce_scatters(rank: int, world_size: int) -> None:
    for op, dtype, count in cases():
        if count == 0:
            continue
        inputs = every_input(dtype, count * world_size, world_size)
        expected = blocks_for(rank, inputs, world_size)
        from_list, from_tensor = torch.empty(2, count).to(dtype)
        blocks = [block.clone() for block in inputs[rank].chunk(world_size)]
        dist.reduce_scatter(from_list, blocks, OPS[op])
        assert_reduces(from_list, op, expected, "reduce_scatter")
        reduce_scatter_single(from_tensor, inputs[rank], OPS[op])
        assert_reduces(from_tensor, op, expected, "reduce_scatter_single")


def coalesced_all_reduces(rank: int, world_size: int) -> None:
    for dtype in (torch.float32, torch.int64):
        inputs = [every_input(dtype, count, world_size) for count in (5, 0, 999)]
        mine = [each[rank].clone() for each in inputs]
        with dist._coalescing_manager():
            for tensor in mine:
                dist.all_reduce(tensor)
        for actual, each in zip(mine, inputs, strict=True):
            assert_reduces(actual, "sum", each, "coalesced all_reduce")


def premultiplied_sums(rank: int, world_size: int) -> None:
    for dtype in FLOATS:
        inputs = every_input(dtype, 100, world_size)
        for factor in (0.5, torch.tensor(0.25)):
            op = torch.distributed._make_nccl_premul_sum(factor)
            scaled = [tensor * float(factor) for tensor in inputs]  # powers of two: exact
            mine, mine_too = inputs[rank].clone(), torch.empty(100).to(dtype)
            dist.all_reduce(mine, op)
            assert_reduces(mine, "sum", scaled, "premultiplied all_reduce")
            reduce_scatter_single(mine_too, inputs[rank].repeat(world_size), op)
            assert_reduces(mine_too, "sum", scaled, "premultiplied reduce_scatter")


def sparse_all_reduces(rank: int, world_size: int) -> None:
    """Every rank has other indices and another number of them; rank 0 has one twice."""
    indices = [[0, 0, rank + 1]] if rank == 0 else [list(range(rank, 2 * rank + 1))]
    entries = torch.ones(len(indices[0]), 2) * (rank + 1)
    mine = torch.sparse_coo_tensor(torch.tensor(indices), entries, (10, 2))
    dense = [torch.empty(10, 2) for _ in range(world_size)]
    dist.all_gather(dense, mine.to_dense())
    dist.all_reduce(mine)
    assert mine.is_sparse
    torch.testing.assert_close(mine.to_dense(), sum(dense))


def results_agree_on_all_ranks(rank: int, world_size: int) -> None:
    """Training needs replicas that do not drift apart: the bits must be the same everywhere."""
    for count in (7, 1000, LARGE):
        for dtype in (torch.float32, torch.bfloat16):
            mine = seeded_input(dtype, count, rank)
            dist.all_reduce(mine)
            everyone = [torch.empty_like(mine) for _ in range(world_size)]
            dist.all_gather(everyone, mine)
            assert all(torch.equal(other, mine) for other in everyone)


def refuses_what_has_no_meaning(rank: int, world_size: int) -> None:
    refused = [(dtype, "sum") for dtype in FLOAT8]
    refused += [(torch.float32, "band"), (torch.float64, "bxor"), (torch.bool, "avg")]
    for dtype, op in refused:
        with pytest.raises((NotImplementedError, ValueError)):
            dist.all_reduce(torch.zeros(4).to(dtype), OPS[op])
    usable = torch.ones(4)
    dist.all_reduce(usable)
    assert usable.tolist() == [world_size] * 4


ON_EVERY_BACKEND = [
    all_reduces,
    all_reduces_large,
    reduces_to_a_root,
    reduce_scatters,
    coalesced_all_reduces,
    sparse_all_reduces,
    results_agree_on_all_ranks,
]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("check", ON_EVERY_BACKEND)
def test_reductions(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@not_on_gloo("has no PREMUL_SUM")
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_premultiplied_sums(world_size: int) -> None:
    run_ranks(premultiplied_sums, world_size)


@not_on_gloo("averages bool")
@pytest.mark.parametrize("world_size", [1, 2])
def test_refusals(world_size: int) -> None:
    run_ranks(refuses_what_has_no_meaning, world_size)


def test_the_reference_covers_every_case() -> None:
    for dtype in TYPES:
        for op in ops_for(dtype):
            inputs = every_input(dtype, 5, 3)
            assert_reduces(reduced(op, inputs).to(dtype), op, inputs)

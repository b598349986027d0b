# SPDX-License-Identifier: Apache-2.0
"""Functional collectives, in eager mode and compiled, against the arithmetic they stand for."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as distributed_nn
from torch.nn.parallel import DistributedDataParallel

from support.launch import run_ranks
from support.models import assert_same_parameters, seeded_mlp, train

pytestmark = pytest.mark.multiproc


def values(rank: int) -> torch.Tensor:
    """Return what one rank contributes; rows divide by every world size that is tested."""
    return torch.arange(24, dtype=torch.float32).reshape(8, 3) + 100 * rank


def reduces(rank: int, world_size: int) -> None:
    everyone = torch.stack([values(other) for other in range(world_size)])
    for op, expected in (
        ("sum", everyone.sum(0)),
        ("max", everyone.amax(0)),
        ("avg", everyone.mean(0)),
    ):
        actual = funcol.all_reduce(values(rank), op, dist.group.WORLD)
        torch.testing.assert_close(actual + 0, expected)


def gathers_and_scatters(rank: int, world_size: int) -> None:
    group = dist.group.WORLD
    for dim in (0, 1):
        gathered = funcol.all_gather_tensor(values(rank), dim, group)
        expected = torch.cat([values(other) for other in range(world_size)], dim)
        torch.testing.assert_close(gathered + 0, expected)
    total = sum(values(other) for other in range(world_size))
    scattered = funcol.reduce_scatter_tensor(values(rank), "sum", 0, group)
    torch.testing.assert_close(scattered + 0, total.chunk(world_size)[rank])


def coalesces(rank: int, world_size: int) -> None:
    group = dist.group.WORLD
    inputs = [values(rank), values(rank)[:, 0].contiguous()]
    total = [sum(values(other) for other in range(world_size))]
    total.append(total[0][:, 0])
    everyone = [torch.cat([values(other) for other in range(world_size)])]
    everyone.append(everyone[0][:, 0])
    for actual, expected in (
        (funcol.all_reduce_coalesced(inputs, "sum", group), total),
        (funcol.all_gather_into_tensor_coalesced(inputs, group), everyone),
    ):
        torch.testing.assert_close([tensor + 0 for tensor in actual], expected)
    scattered = funcol.reduce_scatter_tensor_coalesced(inputs, "sum", [0, 0], group)
    expected = [tensor.chunk(world_size)[rank] for tensor in total]
    torch.testing.assert_close([tensor + 0 for tensor in scattered], expected)


def exchanges_uneven_parts(rank: int, world_size: int) -> None:
    """Rank r sends r + p rows to rank p: no two exchanges are of one size, one is empty."""
    rows = [rank + peer for peer in range(world_size)]
    source = torch.full((sum(rows), 2), float(rank))
    actual = funcol.all_to_all_single(source, rows, rows, dist.group.WORLD)
    expected = [torch.full((rank + peer, 2), float(peer)) for peer in range(world_size)]
    torch.testing.assert_close(actual + 0, torch.cat(expected))


def broadcasts_and_permutes(rank: int, world_size: int) -> None:
    root = world_size - 1
    received = funcol.broadcast(values(rank), root, dist.group.WORLD)
    torch.testing.assert_close(received + 0, values(root))
    to_next = [(peer + 1) % world_size for peer in range(world_size)]
    flat = values(rank).flatten()  # permute_tensor counts elements, not rows
    shifted = funcol.permute_tensor(flat, to_next, dist.group.WORLD)
    torch.testing.assert_close(shifted + 0, values((rank - 1) % world_size).flatten())


def gradients_flow_through(rank: int, world_size: int) -> None:
    group = dist.group.WORLD
    source = values(rank).requires_grad_()
    gathered = funcol.all_gather_tensor_autograd(source, 0, group)
    funcol.reduce_scatter_tensor_autograd(gathered * (rank + 1), "sum", 0, group).sum().backward()
    factor = sum(other + 1 for other in range(world_size))
    torch.testing.assert_close(source.grad, torch.full_like(source, float(factor)))


def autograd_of_distributed_nn(rank: int, world_size: int) -> None:
    """The older differentiable collectives, whose backward passes are collectives too."""
    weight = float(rank + 1)  # so that gradients tell the ranks apart
    total = float(sum(range(1, world_size + 1)))

    def gradient_of(function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        x = torch.ones(world_size).requires_grad_()
        (function(x).sum() * weight).backward()
        return x.grad

    ones = torch.ones(world_size)
    assert torch.equal(gradient_of(distributed_nn.all_reduce), total * ones)
    gathered = gradient_of(lambda x: torch.stack(distributed_nn.all_gather(x)))
    assert torch.equal(gathered, total * ones)
    scattered = gradient_of(
        lambda x: distributed_nn.reduce_scatter(torch.empty(1), list(x.split(1)))
    )
    assert torch.equal(scattered, torch.arange(1.0, world_size + 1))
    exchanged = gradient_of(lambda x: distributed_nn.all_to_all_single(torch.empty(world_size), x))
    assert torch.equal(exchanged, torch.arange(1.0, world_size + 1))
    from_root = gradient_of(lambda x: distributed_nn.broadcast(x, 0))
    assert torch.equal(from_root, (total if rank == 0 else 0) * ones)


def mixed_collectives(x: torch.Tensor) -> torch.Tensor:
    """Compute something that no pass may reorder, drop or run twice."""
    group = dist.group.WORLD
    total = funcol.all_reduce(x.sin(), "sum", group)
    gathered = funcol.all_gather_tensor(total * 2, 0, group)
    own = funcol.reduce_scatter_tensor(gathered.cos(), "avg", 0, group)
    return funcol.all_to_all_single(own + x, None, None, group).exp()


def compiled_function(rank: int, world_size: int) -> None:
    x = values(rank) / 100
    compiled = torch.compile(mixed_collectives, fullgraph=True)
    torch.testing.assert_close(compiled(x), mixed_collectives(x) + 0)


def in_place_collective(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def compiled_in_place_collective(rank: int, world_size: int) -> None:
    x = values(rank)
    compiled = torch.compile(in_place_collective, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), in_place_collective(x))


def compiled_ddp(rank: int, world_size: int) -> None:
    """The DDP optimiser splits the graph so that buckets overlap with the rest of backward."""
    width = 600  # so that the middle layer alone fills a bucket of the smallest size
    ddp = DistributedDataParallel(seeded_mlp(width), bucket_cap_mb=1)
    compiled = torch.compile(ddp, backend="aot_eager")
    assert_same_parameters(train(compiled, 3, rank, world_size), train(seeded_mlp(width), 3))


CHECKS = [
    reduces,
    gathers_and_scatters,
    coalesces,
    exchanges_uneven_parts,
    broadcasts_and_permutes,
    gradients_flow_through,
    autograd_of_distributed_nn,
]
COMPILED = [compiled_function, compiled_in_place_collective, compiled_ddp]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_functional(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", COMPILED)
def test_compile(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size, timeout_s=180)

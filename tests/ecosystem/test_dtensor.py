# SPDX-License-Identifier: Apache-2.0
"""DTensor, tensor parallelism and DeviceMesh against the same computation on one process."""

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from support.launch import run_ranks

pytestmark = pytest.mark.multiproc


def seeded(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def redistributes_between_placements(rank: int, world_size: int) -> None:
    """Sizes that the world size does not divide: shards differ, some are empty."""
    mesh = init_device_mesh("cpu", (world_size,))
    whole = seeded(world_size + 1, 5)
    placements: list[Placement] = [Replicate(), Shard(0), Shard(1)]
    for source, target in itertools.product(placements, placements):
        moved = distribute_tensor(whole, mesh, [source]).redistribute(mesh, [target])
        torch.testing.assert_close(moved.full_tensor(), whole, rtol=0, atol=0)


def reduces_partial_sums(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    expected = sum(seeded(7, 6) * (other + 1) for other in range(world_size))
    for target in [Replicate(), Shard(0), Shard(1)]:
        partial = DTensor.from_local(seeded(7, 6) * (rank + 1), mesh, [Partial()])
        torch.testing.assert_close(partial.redistribute(mesh, [target]).full_tensor(), expected)


def reduces_partial_extremes_and_averages(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    every = torch.stack([seeded(4, 4) * (1 - other) for other in range(world_size)])
    references = {"max": every.amax(0), "min": every.amin(0), "avg": every.mean(0)}
    for op, expected in references.items():
        partial = DTensor.from_local(every[rank].clone(), mesh, [Partial(op)])
        torch.testing.assert_close(partial.full_tensor(), expected)


def multiplies_sharded_matrices(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    left, right = seeded(8, 12), seeded(12, 4)
    placements: list[Placement] = [Replicate(), Shard(0), Shard(1)]
    for of_left, of_right in itertools.product(placements, placements):
        product = distribute_tensor(left, mesh, [of_left]) @ distribute_tensor(
            right, mesh, [of_right]
        )
        torch.testing.assert_close(product.full_tensor(), left @ right)


def shards_over_two_dimensions(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("rows", "columns"))
    whole = seeded(6, 6)
    sharded = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    moved = sharded.redistribute(mesh, [Replicate(), Shard(0)])
    torch.testing.assert_close(moved.full_tensor(), whole, rtol=0, atol=0)
    torch.testing.assert_close(sharded.sum().full_tensor(), whole.sum())


def gradients_flow_through_redistribution(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    whole = seeded(8, 4).requires_grad_()
    sharded = distribute_tensor(whole.detach(), mesh, [Shard(0)]).requires_grad_()
    (sharded.redistribute(mesh, [Replicate()]) ** 3).sum().backward()
    (whole**3).sum().backward()
    torch.testing.assert_close(sharded.grad.full_tensor(), whole.grad)


class Block(nn.Module):
    """A norm and a two-layer perceptron, the unit of tensor and sequence parallelism."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(self.norm(inputs))))


def assert_block_matches(parallel: nn.Module, output: torch.Tensor, inputs: torch.Tensor) -> None:
    single = Block()
    expected = single(inputs)
    torch.testing.assert_close(output, expected)
    output.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    for sharded, whole in zip(parallel.parameters(), single.parameters(), strict=True):
        grad = sharded.grad.full_tensor() if isinstance(sharded.grad, DTensor) else sharded.grad
        torch.testing.assert_close(grad, whole.grad, rtol=1e-4, atol=1e-4)


def tensor_parallel(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    block, inputs = parallelize_module(Block(), mesh, plan), seeded(4, 8)
    assert_block_matches(block, block(inputs), inputs)


def sequence_parallel(rank: int, world_size: int) -> None:
    """Activations between blocks are sharded along the sequence: gather in, scatter out."""
    mesh = init_device_mesh("cpu", (world_size,))
    plan = {
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    block, inputs = parallelize_module(Block(), mesh, plan), seeded(2, 8, 8)
    local = inputs.chunk(world_size, dim=1)[rank].contiguous()
    assert_block_matches(block, block(local).full_tensor(), inputs)


def mesh_dimensions_are_groups(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("outer", "inner"))
    outer, inner = mesh.get_coordinate()
    for name, members in (
        ("outer", [inner + position * (world_size // 2) for position in range(2)]),
        ("inner", [outer * (world_size // 2) + position for position in range(world_size // 2)]),
    ):
        value = torch.tensor([2.0**rank])
        dist.all_reduce(value, group=mesh.get_group(name))
        assert value.item() == sum(2.0**member for member in members)
        assert mesh[name].size() == len(members)


def mesh_flattens(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("outer", "inner"))
    value = torch.tensor([2.0**rank])
    dist.all_reduce(value, group=mesh["outer", "inner"]._flatten().get_group())
    assert value.item() == 2.0**world_size - 1


CHECKS = [
    redistributes_between_placements,
    reduces_partial_sums,
    reduces_partial_extremes_and_averages,
    multiplies_sharded_matrices,
    shards_over_two_dimensions,
    gradients_flow_through_redistribution,
    tensor_parallel,
    sequence_parallel,
    mesh_dimensions_are_groups,
    mesh_flattens,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_dtensor(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)

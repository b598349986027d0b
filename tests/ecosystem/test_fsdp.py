# SPDX-License-Identifier: Apache-2.0
"""Fully sharded training, both generations, must train as one process does on the whole batch."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.nn.functional import mse_loss

from support.launch import run_ranks
from support.models import assert_same_parameters, seeded_batch, seeded_mlp, slice_of, train

STEPS = 4
pytestmark = pytest.mark.multiproc


def shard(model: nn.Sequential, mesh: DeviceMesh, **options: object) -> nn.Sequential:
    """Make each linear layer a unit of its own, so that gathers and scatters overlap."""
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return model


def assert_trains_as_one_process(model: nn.Module, **tolerance: float) -> None:
    """Compare the gathered parameters of an FSDP2 model after training."""
    train(model, STEPS, dist.get_rank(), dist.get_world_size())
    single = train(seeded_mlp(), STEPS)
    for sharded, whole in zip(model.parameters(), single.parameters(), strict=True):
        gathered = sharded.full_tensor().detach()
        torch.testing.assert_close(gathered, whole.detach(), **tolerance)


def fsdp2(rank: int, world_size: int) -> None:
    assert_trains_as_one_process(shard(seeded_mlp(), init_device_mesh("cpu", (world_size,))))


def fsdp2_uneven_shards(rank: int, world_size: int) -> None:
    """A width that no world size divides leaves ranks with unequal and empty shards."""
    model = shard(seeded_mlp(width=5), init_device_mesh("cpu", (world_size,)))
    train(model, STEPS, rank, world_size)
    single = train(seeded_mlp(width=5), STEPS)
    for sharded, whole in zip(model.parameters(), single.parameters(), strict=True):
        torch.testing.assert_close(sharded.full_tensor().detach(), whole.detach())


def fsdp2_without_resharding(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    assert_trains_as_one_process(shard(seeded_mlp(), mesh, reshard_after_forward=False))


def fsdp2_mixed_precision(rank: int, world_size: int) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = shard(seeded_mlp(), init_device_mesh("cpu", (world_size,)), mp_policy=policy)
    assert_trains_as_one_process(model, rtol=0.05, atol=0.02)


def fsdp2_reduces_in_bfloat16(rank: int, world_size: int) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    model = shard(seeded_mlp(), init_device_mesh("cpu", (world_size,)), mp_policy=policy)
    assert_trains_as_one_process(model, rtol=0.05, atol=0.02)


def fsdp2_two_dimensional_mesh(rank: int, world_size: int) -> None:
    """Replicas of shards: reduce-scatter in one dimension, all-reduce in the other."""
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("replicate", "shard"))
    assert_trains_as_one_process(shard(seeded_mlp(), mesh))


def fsdp2_accumulates_gradients(rank: int, world_size: int) -> None:
    model, single = shard(seeded_mlp(), init_device_mesh("cpu", (world_size,))), seeded_mlp()
    for step in range(2):
        model.set_requires_gradient_sync(step == 1)
        inputs, targets = seeded_batch(step)
        mine, goal = (slice_of(rank, world_size, part) for part in (inputs, targets))
        mse_loss(model(mine), goal).backward()
        mse_loss(single(inputs), targets).backward()
    for sharded, whole in zip(model.parameters(), single.parameters(), strict=True):
        torch.testing.assert_close(sharded.grad.full_tensor(), whole.grad)


def fsdp2_clips_gradients(rank: int, world_size: int) -> None:
    model, single = shard(seeded_mlp(), init_device_mesh("cpu", (world_size,))), seeded_mlp()
    inputs, targets = seeded_batch(0)
    mine, goal = (slice_of(rank, world_size, part) for part in (inputs, targets))
    mse_loss(model(mine), goal).backward()
    mse_loss(single(inputs), targets).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    torch.testing.assert_close(
        norm.full_tensor(), nn.utils.clip_grad_norm_(single.parameters(), 0.01)
    )


def assert_fsdp1_trains_as_one_process(strategy: ShardingStrategy, **options: object) -> None:
    model = FullyShardedDataParallel(
        seeded_mlp(),
        sharding_strategy=strategy,
        device_id=torch.device("cpu"),
        use_orig_params=True,
        **options,
    )
    train(model, STEPS, dist.get_rank(), dist.get_world_size())
    with FullyShardedDataParallel.summon_full_params(model):
        assert_same_parameters(model, train(seeded_mlp(), STEPS))


def fsdp1(rank: int, world_size: int) -> None:
    assert_fsdp1_trains_as_one_process(ShardingStrategy.FULL_SHARD)


def fsdp1_shards_gradients_only(rank: int, world_size: int) -> None:
    assert_fsdp1_trains_as_one_process(ShardingStrategy.SHARD_GRAD_OP)


def fsdp1_hybrid(rank: int, world_size: int) -> None:
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("replicate", "shard"))
    assert_fsdp1_trains_as_one_process(ShardingStrategy.HYBRID_SHARD, device_mesh=mesh)


CHECKS = [
    fsdp2,
    fsdp2_uneven_shards,
    fsdp2_without_resharding,
    fsdp2_mixed_precision,
    fsdp2_reduces_in_bfloat16,
    fsdp2_two_dimensional_mesh,
    fsdp2_accumulates_gradients,
    fsdp2_clips_gradients,
    fsdp1,
    fsdp1_shards_gradients_only,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_fsdp(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


def test_fsdp1_hybrid() -> None:
    """With fewer ranks than four, FSDP1 drops one of the two dimensions."""
    run_ranks(fsdp1_hybrid, 4)

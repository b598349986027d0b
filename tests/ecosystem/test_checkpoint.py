# SPDX-License-Identifier: Apache-2.0
"""Distributed checkpoints: what was saved comes back, on another mesh too, and asynchronously."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from support.launch import run_ranks
from support.models import seeded_mlp, train

pytestmark = pytest.mark.multiproc


def seeded(offset: float = 0.0) -> torch.Tensor:
    return torch.arange(42, dtype=torch.float32).reshape(6, 7) + offset


def saves_and_loads(rank: int, world_size: int, path: str) -> None:
    mesh = init_device_mesh("cpu", (world_size,))
    state = {"weight": distribute_tensor(seeded(), mesh, [Shard(0)]), "step": 17}
    dcp.save(state, checkpoint_id=path)
    loaded = {"weight": distribute_tensor(torch.zeros(6, 7), mesh, [Shard(0)]), "step": 0}
    dcp.load(loaded, checkpoint_id=path)
    torch.testing.assert_close(loaded["weight"].full_tensor(), seeded())
    assert loaded["step"] == 17


def loads_onto_another_sharding(rank: int, world_size: int, path: str) -> None:
    """Rows become columns, and one dimension of ranks becomes two."""
    line = init_device_mesh("cpu", (world_size,))
    square = init_device_mesh("cpu", (2, world_size // 2))
    dcp.save({"weight": distribute_tensor(seeded(), line, [Shard(0)])}, checkpoint_id=path)
    columns = distribute_tensor(torch.zeros(6, 7), line, [Shard(1)])
    tiles = distribute_tensor(torch.zeros(6, 7), square, [Shard(0), Shard(1)])
    for target in (columns, tiles):
        dcp.load({"weight": target}, checkpoint_id=path)
        torch.testing.assert_close(target.full_tensor(), seeded())


def saves_in_the_background(rank: int, world_size: int, path: str) -> None:
    """The state may change, and collectives of another group run, while the copy is written."""
    mesh = init_device_mesh("cpu", (world_size,))
    weight = distribute_tensor(seeded(), mesh, [Shard(0)])
    group = dist.new_group()
    saving = dcp.async_save({"weight": weight}, checkpoint_id=path, process_group=group)
    weight.to_local().zero_()
    for _ in range(10):
        dist.all_reduce(torch.ones(100))
    saving.result()
    dcp.load({"weight": weight}, checkpoint_id=path)
    torch.testing.assert_close(weight.full_tensor(), seeded())


def resumes_sharded_training(rank: int, world_size: int, path: str) -> None:
    mesh = init_device_mesh("cpu", (world_size,))

    def sharded_model() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = fully_shard(seeded_mlp(), mesh=mesh)
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    model, optimizer = sharded_model()
    train(model, 2, rank, world_size)
    optimizer.step()
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.save(state, checkpoint_id=path)

    fresh, fresh_optimizer = sharded_model()
    state = dict(zip(("model", "optimizer"), get_state_dict(fresh, fresh_optimizer), strict=True))
    dcp.load(state, checkpoint_id=path)
    set_state_dict(
        fresh,
        fresh_optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
    assert_same_local(list(fresh.parameters()), list(model.parameters()))
    moments = [
        [entry["exp_avg"] for entry in each.state_dict()["state"].values()]
        for each in (fresh_optimizer, optimizer)
    ]
    assert_same_local(*moments)


def assert_same_local(actual: list[DTensor], expected: list[DTensor]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours.to_local(), theirs.to_local(), rtol=0, atol=0)


CHECKS = [
    saves_and_loads,
    loads_onto_another_sharding,
    saves_in_the_background,
    resumes_sharded_training,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_checkpoint(check: Callable[..., None], world_size: int, tmp_path: Path) -> None:
    run_ranks(check, world_size, arguments=(str(tmp_path / "checkpoint"),))

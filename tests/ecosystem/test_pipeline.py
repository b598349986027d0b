# SPDX-License-Identifier: Apache-2.0
"""Pipeline schedules: the losses and gradients of all stages must equal one process's."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from torch.nn.functional import mse_loss

from support.launch import run_ranks

FEATURES = 8
MICRO_BATCHES = 8
pytestmark = pytest.mark.multiproc


def seeded_stages(count: int) -> list[nn.Module]:
    torch.manual_seed(7)
    return [nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh()) for _ in range(count)]


def seeded_data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(8)
    inputs = torch.randn(2 * MICRO_BATCHES, FEATURES, generator=generator)
    return inputs, torch.randn(2 * MICRO_BATCHES, FEATURES, generator=generator)


def pipeline_stage(modules: list[nn.Module], index: int) -> PipelineStage:
    return PipelineStage(modules[index], index, len(modules), torch.device("cpu"))


def assert_equals_one_process(
    schedule: object, modules: list[nn.Module], mine: list[int], rank: int, world_size: int
) -> None:
    inputs, targets = seeded_data()
    losses: list[torch.Tensor] = []
    for _ in range(2):  # the second step reuses buffers and what the first agreed on
        losses.clear()
        for module in modules:
            module.zero_grad()
        first, last = rank == 0, rank == world_size - 1
        schedule.step(
            *([inputs] if first else []),
            **({"target": targets, "losses": losses} if last else {}),
        )

    expected = seeded_stages(len(modules))
    outputs = nn.Sequential(*expected)(inputs)
    loss = mse_loss(outputs, targets)
    loss.backward()
    if rank == world_size - 1:
        torch.testing.assert_close(torch.stack(losses).mean().detach(), loss.detach())
    for index in mine:
        pairs = zip(modules[index].parameters(), expected[index].parameters(), strict=True)
        for actual, reference in pairs:
            torch.testing.assert_close(actual.grad, reference.grad)


def gpipe(rank: int, world_size: int) -> None:
    modules = seeded_stages(world_size)
    schedule = ScheduleGPipe(pipeline_stage(modules, rank), MICRO_BATCHES, loss_fn=mse_loss)
    assert_equals_one_process(schedule, modules, [rank], rank, world_size)


def one_forward_one_backward(rank: int, world_size: int) -> None:
    modules = seeded_stages(world_size)
    schedule = Schedule1F1B(pipeline_stage(modules, rank), MICRO_BATCHES, loss_fn=mse_loss)
    assert_equals_one_process(schedule, modules, [rank], rank, world_size)


def interleaved(rank: int, world_size: int) -> None:
    """Two stages a rank: a rank both sends to and receives from each neighbour."""
    modules = seeded_stages(2 * world_size)
    mine = [rank, rank + world_size]
    stages = [pipeline_stage(modules, index) for index in mine]
    schedule = ScheduleInterleaved1F1B(stages, MICRO_BATCHES, loss_fn=mse_loss)
    assert_equals_one_process(schedule, modules, mine, rank, world_size)


def two_pipelines_side_by_side(rank: int, world_size: int) -> None:
    """A pipeline in each half of the ranks, as with pipeline and data parallelism together."""
    half = world_size // 2
    groups = [dist.new_group(range(start, start + half)) for start in (0, half)]
    position = rank % half
    modules = seeded_stages(half)
    stage = PipelineStage(
        modules[position], position, half, torch.device("cpu"), group=groups[rank // half]
    )
    schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=mse_loss)
    assert_equals_one_process(schedule, modules, [position], position, half)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", [gpipe, one_forward_one_backward, interleaved])
def test_pipeline(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


def test_pipelines_in_groups() -> None:
    run_ranks(two_pipelines_side_by_side, 4)

# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel must train as one process does on the whole batch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

from support.launch import not_on_gloo, run_ranks
from support.models import (
    FEATURES,
    assert_same_parameters,
    seeded_batch,
    seeded_mlp,
    slice_of,
    train,
)
from support.torch_names import all_gather_single, reduce_scatter_single

STEPS = 4
pytestmark = pytest.mark.multiproc


def wrap(model: nn.Module, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model, **options)


def plain(rank: int, world_size: int) -> None:
    ddp = train(wrap(seeded_mlp()), STEPS, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), STEPS))


def many_buckets_as_gradient_views(rank: int, world_size: int) -> None:
    ddp = wrap(seeded_mlp(), bucket_cap_mb=0.0005, gradient_as_bucket_view=True)
    assert_same_parameters(train(ddp, STEPS, rank, world_size), train(seeded_mlp(), STEPS))


def static_graph(rank: int, world_size: int) -> None:
    ddp = train(wrap(seeded_mlp(), static_graph=True), STEPS, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), STEPS))


class TwoBranches(nn.Module):
    """Uses one branch or the other, so that a rank's backward leaves some parameters out."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList([seeded_mlp(), seeded_mlp()])

    def forward(self, inputs: Tensor, branch: int) -> Tensor:
        return self.branches[branch](inputs)


def unused_parameters(rank: int, world_size: int) -> None:
    ddp = wrap(TwoBranches(), find_unused_parameters=True)
    inputs, targets = seeded_batch(0)
    for _ in range(2):
        ddp.zero_grad()
        mine, goal = (slice_of(rank, world_size, part) for part in (inputs, targets))
        mse_loss(ddp(mine, rank % 2), goal).backward()

    expected = TwoBranches()
    for other in range(world_size):
        theirs, goal = (slice_of(other, world_size, part) for part in (inputs, targets))
        (mse_loss(expected(theirs, other % 2), goal) / world_size).backward()
    for actual, reference in zip(ddp.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(actual.grad, reference.grad)


def no_sync_accumulates(rank: int, world_size: int) -> None:
    ddp, single = wrap(seeded_mlp()), seeded_mlp()
    for step in range(2):
        inputs, targets = seeded_batch(step)
        mse_loss(single(inputs), targets).backward()
    with ddp.no_sync():
        backward_on_slice(ddp, 0, rank, world_size)
    backward_on_slice(ddp, 1, rank, world_size)
    for actual, reference in zip(ddp.parameters(), single.parameters(), strict=True):
        torch.testing.assert_close(actual.grad, reference.grad)


def backward_on_slice(model: nn.Module, step: int, rank: int, world_size: int) -> None:
    inputs, targets = (slice_of(rank, world_size, part) for part in seeded_batch(step))
    mse_loss(model(inputs), targets).backward()


def buffers_follow_rank_zero(rank: int, world_size: int) -> None:
    ddp = wrap(nn.BatchNorm1d(FEATURES))
    for step in range(3):
        ddp(slice_of(rank, world_size, seeded_batch(step)[0]))
    ddp(slice_of(rank, world_size, seeded_batch(3)[0]))  # its start shares the buffers of step 2

    expected = nn.BatchNorm1d(FEATURES)
    for step in range(3):
        expected(slice_of(0, world_size, seeded_batch(step)[0]))
    expected(slice_of(rank, world_size, seeded_batch(3)[0]))
    torch.testing.assert_close(ddp.module.running_mean, expected.running_mean)
    torch.testing.assert_close(ddp.module.running_var, expected.running_var)


def join_with_uneven_inputs(rank: int, world_size: int) -> None:
    """Rank r has r + 1 batches; a gradient is the sum over those still training, over all."""
    ddp = wrap(seeded_mlp())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with Join([ddp]):
        for step in range(rank + 1):
            optimizer.zero_grad()
            backward_on_slice(ddp, step, rank, world_size)
            optimizer.step()

    expected = seeded_mlp()
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.1)
    for step in range(world_size):
        optimizer.zero_grad()
        for other in range(step, world_size):
            inputs, targets = (slice_of(other, world_size, part) for part in seeded_batch(step))
            (mse_loss(expected(inputs), targets) / world_size).backward()
        optimizer.step()
    assert_same_parameters(ddp, expected)


def train_with_hook(hook: Callable[..., Any], rank: int, world_size: int) -> nn.Module:
    ddp = wrap(seeded_mlp())
    ddp.register_comm_hook(None, hook)
    return train(ddp, STEPS, rank, world_size)


def all_reduce_hook(rank: int, world_size: int) -> None:
    ddp = train_with_hook(default_hooks.allreduce_hook, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), STEPS))


def half_precision_hook(rank: int, world_size: int) -> None:
    ddp = train_with_hook(default_hooks.fp16_compress_hook, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), STEPS), rtol=5e-3, atol=5e-3)


def scatter_then_gather(_: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A hook of two chained collectives, the second started from the first one's callback."""
    world_size = dist.get_world_size()
    flat = bucket.buffer()
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % world_size))
    part = torch.empty(padded.numel() // world_size)
    work = reduce_scatter_single(part, padded, async_op=True)

    def gather(future: torch.futures.Future[list[Tensor]]) -> Tensor:
        future.wait()
        whole = torch.empty_like(padded)
        all_gather_single(whole, part.div_(world_size))
        return whole[: flat.numel()]

    return work.get_future().then(gather)


def custom_hook(rank: int, world_size: int) -> None:
    ddp = train_with_hook(scatter_then_gather, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), STEPS))


def power_sgd_hook(rank: int, world_size: int) -> None:
    def trained_over(group: dist.ProcessGroup) -> nn.Module:
        ddp = wrap(seeded_mlp(), process_group=group)
        state = powerSGD_hook.PowerSGDState(group, 1, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return train(ddp, STEPS, rank, world_size)

    # Gloo first: it aborts if its group ends while a callback, just over, still refers to it.
    expected = trained_over(dist.new_group(backend="gloo"))
    assert_same_parameters(trained_over(dist.group.WORLD), expected)


def sharded_optimizer(rank: int, world_size: int) -> None:
    ddp, single = wrap(seeded_mlp()), seeded_mlp()
    sharded = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01)
    whole = torch.optim.Adam(single.parameters(), lr=0.01)
    for step in range(STEPS):
        sharded.zero_grad()
        backward_on_slice(ddp, step, rank, world_size)
        sharded.step()
        whole.zero_grad()
        backward_on_slice(single, step, 0, 1)
        whole.step()
    assert_same_parameters(ddp, single)
    sharded.consolidate_state_dict(to=0)
    if rank == 0:
        moments = [state["exp_avg"] for state in sharded.state_dict()["state"].values()]
        expected = [state["exp_avg"] for state in whole.state_dict()["state"].values()]
        torch.testing.assert_close(moments, expected)


CHECKS = [
    plain,
    many_buckets_as_gradient_views,
    static_graph,
    unused_parameters,
    no_sync_accumulates,
    buffers_follow_rank_zero,
    join_with_uneven_inputs,
    all_reduce_hook,
    half_precision_hook,
    pytest.param(custom_hook, marks=not_on_gloo("has no future for reduce_scatter")),
    power_sgd_hook,
    sharded_optimizer,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_ddp(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)

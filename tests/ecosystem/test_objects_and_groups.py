# SPDX-License-Identifier: Apache-2.0
"""Object collectives, several groups, several threads, and the debug mode that wraps a backend."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from support.launch import not_on_gloo, run_ranks
from support.models import assert_same_parameters, seeded_mlp, train

pytestmark = pytest.mark.multiproc


def object_of(rank: int) -> dict[str, Any]:
    """Return an object whose pickle has another length on every rank."""
    return {"rank": rank, "text": "x" * (1000 * rank), "tensor": torch.arange(rank)}


def assert_is_object_of(rank: int, actual: Any) -> None:
    assert actual["rank"] == rank
    assert len(actual["text"]) == 1000 * rank
    assert torch.equal(actual["tensor"], torch.arange(rank))


def gathers_objects(rank: int, world_size: int) -> None:
    everyone: list[Any] = [None] * world_size
    dist.all_gather_object(everyone, object_of(rank))
    for other, actual in enumerate(everyone):
        assert_is_object_of(other, actual)

    root = world_size - 1
    gathered: list[Any] | None = [None] * world_size if rank == root else None
    dist.gather_object(object_of(rank), gathered, dst=root)
    for other, actual in enumerate(gathered or []):
        assert_is_object_of(other, actual)


def broadcasts_and_scatters_objects(rank: int, world_size: int) -> None:
    root = world_size - 1
    received: list[Any] = [object_of(rank), None if rank != root else "second"]
    dist.broadcast_object_list(received, src=root)
    assert_is_object_of(root, received[0])
    assert received[1] == "second"

    mine: list[Any] = [None]
    everyone = [object_of(other) for other in range(world_size)] if rank == root else None
    dist.scatter_object_list(mine, everyone, src=root)
    assert_is_object_of(rank, mine[0])


def sends_objects(rank: int, world_size: int) -> None:
    received: list[Any] = [None]
    if rank == 0:
        dist.send_object_list([object_of(7)], dst=1)
    if rank == 1:
        dist.recv_object_list(received, src=0)
        assert_is_object_of(7, received[0])


def overlapping_groups(rank: int, world_size: int) -> None:
    """Every pair of ranks is a group, so each rank is in several, in another order than others."""
    pairs = [(low, high) for low in range(world_size) for high in range(low + 1, world_size)]
    groups = {pair: dist.new_group(list(pair)) for pair in pairs}
    for pair, group in groups.items():
        if rank in pair:
            value = torch.tensor([2.0**rank])
            dist.all_reduce(value, group=group)
            assert value.item() == 2.0 ** pair[0] + 2.0 ** pair[1]


def groups_come_and_go(rank: int, world_size: int) -> None:
    for round_number in range(20):
        group = dist.new_group()
        value = torch.full((10,), float(round_number))
        dist.all_reduce(value, group=group)
        assert value[0].item() == round_number * world_size
        dist.destroy_process_group(group)


def a_thread_for_each_group(rank: int, world_size: int) -> None:
    groups = [dist.new_group() for _ in range(4)]
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for step in range(25):
                value = torch.full((1 + 100 * index,), float(rank + step))
                dist.all_reduce(value, group=groups[index])
                expected = sum(other + step for other in range(world_size))
                torch.testing.assert_close(value, torch.full_like(value, expected))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def trains_in_debug_mode(rank: int, world_size: int) -> None:
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    ddp = train(DistributedDataParallel(seeded_mlp()), 2, rank, world_size)
    assert_same_parameters(ddp, train(seeded_mlp(), 2))
    gathered = [torch.empty(2) for _ in range(world_size)]
    dist.all_gather(gathered, torch.full((2,), float(rank)))
    assert [part[0].item() for part in gathered] == list(range(world_size))


def debug_mode_finds_a_mismatch(rank: int, world_size: int) -> None:
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks"):
        dist.all_reduce(torch.ones(3 + rank))
    dist.barrier()


def monitored_barrier_reaches_through_the_wrapper(rank: int, world_size: int) -> None:
    import pccl

    pccl.torch.monitored_barrier()


CHECKS = [
    gathers_objects,
    broadcasts_and_scatters_objects,
    sends_objects,
    overlapping_groups,
    groups_come_and_go,
    a_thread_for_each_group,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_groups(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(trains_in_debug_mode, marks=not_on_gloo("crashes DDP in debug mode")),
        pytest.param(
            monitored_barrier_reaches_through_the_wrapper, marks=not_on_gloo("needs no wrapper")
        ),
        debug_mode_finds_a_mismatch,
    ],
)
def test_debug_mode(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})

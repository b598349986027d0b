# SPDX-License-Identifier: Apache-2.0
"""Point-to-point messages through torch: any source, any order of tags, batches, to oneself."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from support.launch import not_on_gloo, run_ranks

LARGE = 1_000_003
pytestmark = pytest.mark.multiproc


def receives_from_any_source(rank: int, world_size: int) -> None:
    if rank != 0:
        for number in range(3):
            dist.send(torch.tensor([float(10 * rank + number)]), 0)
        return
    received: dict[int, list[float]] = {}
    for _ in range(3 * (world_size - 1)):
        value = torch.empty(1)
        source = dist.recv(value)
        received.setdefault(source, []).append(value.item())
    expected = {peer: [10.0 * peer + n for n in range(3)] for peer in range(1, world_size)}
    assert received == expected


def receives_any_source_by_tag(rank: int, world_size: int) -> None:
    """A message from any source is still the one with the tag that was asked for."""
    if rank != 0:
        for work in [dist.isend(torch.tensor([float(tag)]), 0, tag=tag) for tag in (1, 2)]:
            work.wait()
        return
    for tag in (2, 1):
        sources = set()
        for _ in range(world_size - 1):
            value = torch.empty(1)
            sources.add(dist.recv(value, tag=tag))
            assert value.item() == tag
        assert sources == set(range(1, world_size))


def receives_tags_in_any_order(rank: int, world_size: int) -> None:
    tags = list(range(8))
    if rank == 0:
        pending = [dist.isend(torch.full((100,), float(tag)), 1, tag=tag) for tag in tags]
        for work in pending:
            work.wait()
    if rank == 1:
        for tag in reversed(tags):
            value = torch.empty(100)
            dist.recv(value, 0, tag=tag)
            assert torch.equal(value, torch.full((100,), float(tag)))


def keeps_the_order_of_one_tag(rank: int, world_size: int) -> None:
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    sizes = [1, LARGE, 2, 30_000, 3]
    sending = [
        dist.isend(torch.full((size,), float(number)), following)
        for number, size in enumerate(sizes)
    ]
    received = [torch.empty(size) for size in sizes]
    receiving = [dist.irecv(value, previous) for value in received]
    for work in sending + receiving:
        work.wait()
    for number, value in enumerate(received):
        assert torch.equal(value, torch.full_like(value, float(number)))


def large_messages_cross(rank: int, world_size: int) -> None:
    """Both sides of each pair send first: nobody may wait for room at the other's side."""
    peer = world_size - 1 - rank
    if peer == rank:
        return
    received = torch.empty(LARGE)
    work = dist.isend(torch.full((LARGE,), float(rank)), peer)
    dist.recv(received, peer)
    work.wait()
    assert torch.equal(received, torch.full((LARGE,), float(peer)))


def many_in_flight(rank: int, world_size: int) -> None:
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    received = [torch.empty(50) for _ in range(100)]
    receiving = [dist.irecv(value, previous) for value in received]
    sending = [dist.isend(torch.full((50,), float(n)), following) for n in range(100)]
    for work in receiving + sending:
        work.wait()
    assert [value[49].item() for value in received] == list(range(100))


def messages_run_beside_collectives(rank: int, world_size: int) -> None:
    """A message that waits for its receiver holds no collective back."""
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    sending = dist.isend(torch.full((LARGE,), float(rank)), following)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == world_size
    received = torch.empty(LARGE)
    dist.recv(received, previous)
    sending.wait()
    assert torch.equal(received, torch.full((LARGE,), float(previous)))


def batches(rank: int, world_size: int) -> None:
    """All to all by messages, receives listed first on one rank and last on the others."""
    received = [torch.empty(other + 1) for other in range(world_size)]
    operations = []
    for peer in range(world_size):
        if peer != rank:
            operations.append(dist.P2POp(dist.irecv, received[peer], peer))
            sent = torch.full((rank + 1,), float(rank))
            operations.append(dist.P2POp(dist.isend, sent, peer))
    if rank == 0:
        operations.reverse()
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for peer, value in enumerate(received):
        if peer != rank:
            assert torch.equal(value, torch.full((peer + 1,), float(peer)))


def batches_with_tags_in_a_subgroup(rank: int, world_size: int) -> None:
    members = [0, world_size - 1]
    group = dist.new_group(members)
    if rank not in members:
        return
    peer = members[1] if rank == members[0] else members[0]
    values = {tag: torch.empty(4) for tag in (5, 6)}
    operations = [dist.P2POp(dist.irecv, values[tag], peer, group, tag) for tag in (6, 5)]
    operations += [
        dist.P2POp(dist.isend, torch.full((4,), float(tag)), peer, group, tag) for tag in (5, 6)
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert all(torch.equal(value, torch.full((4,), float(tag))) for tag, value in values.items())


def sends_to_itself(rank: int, world_size: int) -> None:
    """Python's send refuses it; a pipeline whose stages share a rank asks the group itself."""
    group, received = dist.group.WORLD, torch.empty(3)
    receiving = group.recv([received], rank, 9)
    sending = group.send([torch.full((3,), 4.0)], rank, 9)
    sending.wait()
    receiving.wait()
    assert torch.equal(received, torch.full((3,), 4.0))


ON_EVERY_BACKEND = [
    receives_from_any_source,
    receives_any_source_by_tag,
    receives_tags_in_any_order,
    keeps_the_order_of_one_tag,
    large_messages_cross,
    many_in_flight,
    messages_run_beside_collectives,
    batches,
    batches_with_tags_in_a_subgroup,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", ON_EVERY_BACKEND)
def test_messages(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@not_on_gloo("has no connection of a rank to itself")
@pytest.mark.parametrize("world_size", [1, 2])
def test_messages_to_itself(world_size: int) -> None:
    run_ranks(sends_to_itself, world_size)

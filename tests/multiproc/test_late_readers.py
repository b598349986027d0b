# SPDX-License-Identifier: Apache-2.0
"""A rank that comes late to what its peers have sent: nothing is lost, and nobody hoards it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
import torch.distributed as dist

from support.launch import not_on_gloo, run_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such promises")]
COUNT = 12 << 20  # elements of 4 bytes: many times what sockets hold
LATE_S = 2.5  # more than the peer timeout, after which a closed window must not count as death
MOST_MIB = 24
PEER_TIMEOUT = {"PCCL_TRANSPORTS": "tcp", "PCCL_PEER_TIMEOUT_MS": "1000"}


def memory_mib(line: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(text.split()[1]) >> 10 for text in lines if text.startswith(line))


@contextlib.contextmanager
def the_last_comes_late(rank: int, world_size: int) -> Iterator[None]:
    """What the library keeps for others, or of theirs, shows in the peak of memory."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
    before = memory_mib("VmRSS")
    if rank == world_size - 1:
        time.sleep(LATE_S)
    yield
    assert memory_mib("VmHWM") - before < MOST_MIB


def check_broadcast(rank: int, world_size: int) -> None:
    x = torch.arange(COUNT, dtype=torch.int32) if rank == 0 else torch.zeros(COUNT).int()
    with the_last_comes_late(rank, world_size):
        dist.broadcast(x, 0)
    assert torch.equal(x, torch.arange(COUNT, dtype=torch.int32))


def check_all_reduce(rank: int, world_size: int) -> None:
    x = torch.arange(COUNT, dtype=torch.int32) + rank
    with the_last_comes_late(rank, world_size):
        dist.all_reduce(x)
    total = world_size * (world_size - 1) // 2
    assert torch.equal(x, torch.arange(COUNT, dtype=torch.int32) * world_size + total)


def check_all_to_all(rank: int, world_size: int) -> None:
    given = torch.full((COUNT,), rank, dtype=torch.int32)
    taken = torch.zeros(COUNT, dtype=torch.int32)
    with the_last_comes_late(rank, world_size):
        dist.all_to_all_single(taken, given)
    senders = torch.arange(world_size, dtype=torch.int32)
    assert torch.equal(taken, senders.repeat_interleave(COUNT // world_size))


def check_message(rank: int, world_size: int) -> None:
    """From the neighbour; the one to the late rank waits in the sender's memory."""
    given = torch.arange(COUNT, dtype=torch.int32) + rank
    taken = torch.zeros(COUNT, dtype=torch.int32)
    with the_last_comes_late(rank, world_size):
        work = dist.isend(given, (rank + 1) % world_size)
        dist.recv(taken, (rank - 1) % world_size)
        work.wait()
    assert torch.equal(taken, torch.arange(COUNT, dtype=torch.int32) + (rank - 1) % world_size)


CHECKS = {
    "broadcast": check_broadcast,
    "all_reduce": check_all_reduce,
    "all_to_all": check_all_to_all,
    "message": check_message,
}


def receive_late(rank: int, world_size: int, operation: str) -> None:
    dist.all_reduce(torch.ones(1))  # all are connected
    CHECKS[operation](rank, world_size)


@pytest.mark.parametrize("operation", CHECKS)
def test_nothing_is_lost_on_a_late_reader(operation: str) -> None:
    run_ranks(receive_late, 3, arguments=(operation,), timeout_s=60, environment=PEER_TIMEOUT)

# SPDX-License-Identifier: Apache-2.0
"""The operations of the fault matrix, as a user writes them."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from faults.giving_up import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.cells import Cell


def _all_reduce(cell: Cell) -> None:
    dist.all_reduce(torch.ones(256))


def _all_reduce_16mb(cell: Cell) -> None:
    dist.all_reduce(torch.ones(4 << 20))


def _broadcast(cell: Cell) -> None:
    """From each rank in turn, or a root would never wait for anybody."""
    for root in range(dist.get_world_size()):
        dist.broadcast(torch.ones(256), root)


def _all_to_all(cell: Cell) -> None:
    x = torch.ones(dist.get_world_size() * 64)
    dist.all_to_all_single(torch.empty_like(x), x)


def _barrier(cell: Cell) -> None:
    dist.barrier()


def _send_recv(cell: Cell) -> None:
    """All ranks exchange with one, which is the one that fails."""
    centre, rank = cell.victim, dist.get_rank()
    others = [r for r in range(dist.get_world_size()) if r != rank]
    works = []
    for other in others if rank == centre else [centre]:
        works.append(dist.isend(torch.ones(256), other))
        works.append(dist.irecv(torch.empty(256), other))
    for work in works:
        work.wait()


def _new_group(cell: Cell) -> None:
    """Ranks find out about one another through the groups that they share already."""
    dist.barrier()
    group = dist.new_group(timeout=timedelta(seconds=cell.timeout_s))
    dist.destroy_process_group(group)


OPERATIONS: dict[str, Callable[..., None]] = {
    "all_reduce": _all_reduce,
    "all_reduce_16MB": _all_reduce_16mb,
    "broadcast": _broadcast,
    "all_to_all": _all_to_all,
    "barrier": _barrier,
    "send_recv": _send_recv,
    "new_group": _new_group,
    "init": _barrier,
}


def operation_of(cell: Cell, rank: int, store: dist.Store) -> Callable[[], object]:
    """Return what a rank does again and again."""
    if cell.fault == "gives_up":
        return Caller(cell, rank, store).operate
    return functools.partial(OPERATIONS[cell.operation], cell)

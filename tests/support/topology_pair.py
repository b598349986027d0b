# SPDX-License-Identifier: Apache-2.0
"""Two ranks of this machine that say what they count on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable


def explain(rank: int, rendezvous: str, send: Callable[[object], None]) -> None:
    """Send, as rank 0, how an all_reduce of 1 MiB would be made; a worker for ``run_ranks``."""
    comm = pccl.Communicator(rank=rank, world_size=2, rendezvous=rendezvous, timeout=60)
    if rank == 0:
        send(str(pccl.explain("all_reduce", 1 << 20, comm)))
    comm.barrier()

# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of this process: for what needs several, and no process of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Value = TypeVar("Value")


def run_threads(
    folder: Path,
    size: int,
    body: Callable[[pccl.Communicator], Value],
    *,
    transports: str = "",
    algorithm: str = "",
    ends_well: bool = True,
    timeout_s: float = 60.0,
) -> list[Value]:
    """Call ``body`` with a communicator on each of ``size`` threads; give the results by rank.

    Without ``ends_well`` the communicator may be over when ``body`` returns.
    """

    def be_rank(rank: int) -> Value:
        comm = pccl.Communicator(
            rank=rank,
            world_size=size,
            rendezvous=f"file://{folder}/store-{transports}",
            transports=transports,
            algorithm=algorithm,
            timeout=timeout_s,
        )
        value = body(comm)
        if ends_well:
            comm.barrier()
        return value

    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(be_rank, rank) for rank in range(size)]
        return [future.result(timeout=2 * timeout_s) for future in futures]

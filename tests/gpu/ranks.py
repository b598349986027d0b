"""Run one function on several ranks, each a process, on the GPUs that there are.

More ranks than GPUs share them. What shares a GPU runs in turns, also when it waits for the others:
every world size works on every machine, only the timings mean nothing.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import torch
import torch.multiprocessing as mp

if TYPE_CHECKING:
    from collections.abc import Callable

GPUS = torch.cuda.device_count()
RANKS = max(2, GPUS)  # of tests that need no particular number
MOST_RANKS = 8


def _enter(
    rank: int,
    world_size: int,
    port: int,
    body: Callable[..., Any],
    args: tuple[Any, ...],
    results: Any,
) -> None:
    if GPUS > 0:
        torch.cuda.set_device(rank % GPUS)
    try:
        store = torch.distributed.TCPStore("127.0.0.1", port, is_master=False)
        results.put((rank, body(rank, world_size, store, *args), None))
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
        raise


def run_gpu_ranks(
    world_size: int, body: Callable[..., Any], *args: Any, timeout: float = 240
) -> list[Any]:
    """Call ``body(rank, world_size, store, *args)`` on every rank; return the results by rank.

    A rank that ends without a result gives None: so do those that a test kills.
    """
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    # Here and not in a rank: those end when they like.
    server = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = [
        context.Process(target=_enter, args=(rank, world_size, server.port, body, args, results))
        for rank in range(world_size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(timeout)
    stuck = [rank for rank, process in enumerate(ranks) if process.is_alive()]
    for rank in stuck:
        ranks[rank].kill()
    found: list[Any] = [None] * world_size
    failures = [f"rank {rank} did not end in {timeout} s" for rank in stuck]
    while not results.empty():
        rank, result, failure = results.get()
        found[rank] = result
        if failure is not None:
            failures.append(f"rank {rank}:\n{failure}")
    assert not failures, "\n".join(failures)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Run one function on several ranks, each a process, on the GPUs that there are.

More ranks than GPUs share them: every world size works on every machine, only the timings mean
nothing. Under MPS they run side by side, as ``tools/gpu_suite.sh test`` has it on one GPU; else
what shares a GPU runs in turns, also when it waits for the others.
"""

from __future__ import annotations

import ctypes
import functools
import os
import time
import traceback
from typing import TYPE_CHECKING, Any

import torch
import torch.multiprocessing as mp

if TYPE_CHECKING:
    from collections.abc import Callable

GPUS = torch.cuda.device_count()
RANKS = max(2, GPUS)  # of tests that need no particular number
MOST_RANKS = 8
MPS_ENABLED = 133  # CU_DEVICE_ATTRIBUTE_MPS_ENABLED


@functools.cache
def has_mps() -> bool:
    """Tell whether kernels of several processes run side by side on a GPU here."""
    found = ctypes.c_int(0)
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    return cuda.cuDeviceGetAttribute(ctypes.byref(found), MPS_ENABLED, 0) == 0 and found.value == 1


def why_in_turns(ranks: int) -> str:
    """Give the reason to skip what takes minutes where ``ranks`` take turns; empty: they do not."""
    if ranks <= GPUS or has_mps():
        return ""
    return f"{ranks} ranks take turns on {GPUS} GPUs without MPS (tools/gpu_suite.sh test has it)"


def meet_in_host() -> bool:
    """Tell whether kernels of the ranks meet in host memory."""
    return os.environ.get("PCCL_GPU_PEER_ACCESS") == "0"


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
    if world_size > GPUS:  # kernels are what is tested, also where they take turns
        os.environ.setdefault("PCCL_GPU_PEER_ACCESS", "1")
        os.environ.setdefault("PCCL_GPU_HOST_KERNELS", "1")
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
    deadline = time.monotonic() + timeout
    for process in ranks:
        process.join(max(0.0, deadline - time.monotonic()))
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

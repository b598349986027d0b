"""One process for each GPU, for benchmarks that compare backends in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def run(
    body: Callable[..., None], backend: str, options: argparse.Namespace, patience: float
) -> Any:
    """Call ``body(rank, backend, port, options, results)`` on every rank.

    Returns the queue ``results``, or None, with a word on it printed, when a rank failed or took
    longer than ``patience`` seconds. ``port`` is that of a store.
    """
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    ranks = [
        context.Process(target=body, args=(rank, backend, server.port, options, results))
        for rank in range(options.ranks)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(patience)
    if all(process.exitcode == 0 for process in ranks):
        return results
    for process in ranks:
        process.kill()
    print(f"{backend}: failed", flush=True)
    return None


def described(cells: list[Any]) -> dict[str, Any]:
    """Return what a file of results holds: the cells, and what they were measured with."""
    return {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "cells": cells,
    }

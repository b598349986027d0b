# SPDX-License-Identifier: Apache-2.0
"""One process for each GPU, for benchmarks that compare backends in processes of their own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from pccl.bench import bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import SpawnProcess

SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20]


def spawn(
    body: Callable[..., None], ranks: int, *arguments: object
) -> tuple[list[SpawnProcess], Any]:
    """Start ``body(rank, *arguments, results)`` in one process for each rank.

    Returns the processes, which the caller ends, and the queue ``results``.
    """
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    processes = [
        context.Process(target=body, args=(rank, *arguments, results)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    return processes, results


def run(
    body: Callable[..., None], backend: str, options: argparse.Namespace, timeout: float
) -> Any:
    """Call ``body(rank, backend, port, options, results)`` on every rank.

    Returns the queue ``results``, or None, with a word on it printed, when a rank failed or took
    longer than ``timeout`` seconds. ``port`` is that of a store.
    """
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks, results = spawn(body, options.ranks, backend, server.port, options)
    for process in ranks:
        process.join(timeout)
    if all(process.exitcode == 0 for process in ranks):
        return results
    for process in ranks:
        process.kill()
    print(f"{backend}: failed", flush=True)
    return None


def parser_of(description: str) -> argparse.ArgumentParser:
    """Return what both benchmarks of torch.distributed are told, but for what they measure."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=SIZES, help="as 64K")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=200.0, help="seconds")
    parser.add_argument("--json", type=Path)
    return parser


def measure(body: Callable[..., None], options: argparse.Namespace) -> int:
    """Collect the cells that ``body`` puts into its results, and keep them; return a status."""
    results = run(body, "both", options, options.limit)
    if results is None:
        return 1
    cells = []
    while not results.empty():
        cells.append(results.get())
    if options.json:
        options.json.write_text(json.dumps(_described(cells)))
    return 0


def _described(cells: list[Any]) -> dict[str, Any]:
    """Return what a file of results holds: the cells, and what they were measured with."""
    return {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "cells": cells,
    }

"""Collectives through torch.distributed on one host: PCCL against Gloo, in one run.

    python benchmarks/cpu_torch.py --ranks 2 4 --json build/cpu_torch.json

Both backends live in the same processes and take turns at every size. A call starts behind a
barrier; its time is that of the slowest rank; the figure is the median over calls. Sizes are those
of the whole (concatenated) buffer. Exits with status 1 when a cell is slower than Gloo.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

KIB = 1024
SIZES = [KIB * 4**power for power in range(9)]
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
BANDS = {
    "<= 16 KiB": (0, 16 * KIB),
    "64 KiB - 1 MiB": (64 * KIB, KIB * KIB),
    ">= 4 MiB": (4 * KIB * KIB, math.inf),
}
BACKENDS = ("pccl", "gloo")

# The names that torch 2.13 calls deprecated are the only ones that 2.11 has.
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

Cell = dict[str, float | int | str]


def make_call(name: str, group: dist.ProcessGroup, elements: int) -> Callable[[], object]:
    """One call of a collective on `elements` float32 of random data."""
    ranks = group.size()
    whole = torch.randn(elements)
    part = torch.randn(elements // ranks)
    out = torch.empty(elements // ranks * ranks)
    calls: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(whole, dist.ReduceOp.MAX, group=group),
        "all_gather": lambda: all_gather(out, part, group=group),
        "reduce_scatter": lambda: reduce_scatter(part, out, dist.ReduceOp.MAX, group=group),
        "broadcast": lambda: dist.broadcast(whole, 0, group=group),
        "all_to_all": lambda: dist.all_to_all_single(out, whole[: out.numel()], group=group),
    }
    return calls[name]


def measure(call: Callable[[], object], barrier: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each call on this rank."""
    times = []
    for _ in range(repeats):
        barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def slowest_median(times: list[float], group: dist.ProcessGroup) -> float:
    slowest = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
    return statistics.median(slowest.tolist())


def repeats_for(size: int, budget: int) -> int:
    return max(5, min(budget, budget * 64 * KIB // size))


def worker(rank: int, ranks: int, path: str, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {rank % (os.cpu_count() or 1)})
    dist.init_process_group(
        "gloo", rank=rank, world_size=ranks, store=dist.FileStore(path + ".store", ranks)
    )
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    token = torch.zeros(1)

    def barrier() -> None:
        dist.all_reduce(token, group=groups["pccl"])

    cells: list[Cell] = []
    for name in args.collectives:
        for size in args.sizes:
            medians: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
            calls = {backend: make_call(name, groups[backend], size // 4) for backend in BACKENDS}
            for _ in range(args.rounds):
                for backend in BACKENDS:
                    measure(calls[backend], barrier, 2)
                    times = measure(calls[backend], barrier, repeats_for(size, args.repeats))
                    medians[backend].append(slowest_median(times, groups["gloo"]))
            us = {backend: statistics.median(medians[backend]) * 1e6 for backend in BACKENDS}
            cells.append(
                {
                    "collective": name,
                    "ranks": ranks,
                    "bytes": size,
                    "ratio": us["gloo"] / us["pccl"],
                }
                | {f"{backend}_us": us[backend] for backend in BACKENDS}
            )
    if rank == 0:
        Path(path).write_text(json.dumps(cells))
    dist.destroy_process_group()


def run_ranks(ranks: int, args: argparse.Namespace) -> list[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cells.json")
        mp.spawn(worker, args=(ranks, path, args), nprocs=ranks)
        return json.loads(Path(path).read_text())


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def show(cells: list[Cell], ranks: int, console: Console) -> None:
    table = Table(title=f"{ranks} ranks: us PCCL / us Gloo (times faster)")
    table.add_column("bytes", justify="right")
    for name in COLLECTIVES:
        table.add_column(name, justify="right")
    for size in sorted({cell["bytes"] for cell in cells}):
        row = {
            c["collective"]: f"{c['pccl_us']:.1f} / {c['gloo_us']:.1f} ({c['ratio']:.1f}x)"
            for c in cells
            if c["bytes"] == size
        }
        table.add_row(str(size), *(row.get(name, "") for name in COLLECTIVES))
    console.print(table)
    for band, (low, high) in BANDS.items():
        ratios = [float(cell["ratio"]) for cell in cells if low <= float(cell["bytes"]) <= high]
        if ratios:
            console.print(f"{band}: {geometric_mean(ratios):.1f}x, worst cell {min(ratios):.2f}x")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES, choices=COLLECTIVES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each backend at a size")
    parser.add_argument("--repeats", type=int, default=100, help="calls a turn, at most")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    console = Console(width=160)
    cells: list[Cell] = []
    for ranks in args.ranks:
        cells += (found := run_ranks(ranks, args))
        show(found, ranks, console)
    if args.json:
        machine = {"cpu": platform.processor(), "cores": os.cpu_count(), "torch": torch.__version__}
        args.json.write_text(json.dumps({"machine": machine, "cells": cells}, indent=1))
    slower = [cell for cell in cells if float(cell["ratio"]) < 1]
    for cell in slower:
        where = f"{cell['bytes']} bytes on {cell['ranks']} ranks"
        console.print(f"slower than Gloo: {cell['collective']} of {where}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

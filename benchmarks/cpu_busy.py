# SPDX-License-Identifier: Apache-2.0
"""Collectives under CPU quotas and beside busy processes: pccl, Gloo and a yielding Open MPI.

    sudo PYTHONPATH=build/dev/python python benchmarks/cpu_busy.py --runs 3

Two ranks on all cores compute for 2 ms of CPU time, then all_reduce 1 KiB, again and again. The
libraries take turns in the same processes; a figure is the time of a turn divided by its rounds,
the median over turns. ``--compute 0`` leaves the computing out. The conditions:

    quiet               nothing else
    quota               of 0.5, 1 and 1.5 cores for the control group of both ranks
    same group          2, 4 and 8 busy processes beside the ranks
    other cgroup        the ranks in one control group, the busy processes in another
    other autogroup     the busy processes in a session of their own
    DataLoader          two workers for each rank, which prepare a batch for each round
    OpenMP              teams of two threads compute, in each rank

It makes the control groups below its own (root), and removes them. A line says which conditions it
could not make. Exits with status 1 when a cell is below 0.95.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from common import cgroups, mpis, report, torch_peers
from common.cells import KIB, Cell, geometric_mean
from common.launch import on_this_host, run_ranks, run_script
from torch.utils.data import DataLoader, IterableDataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from common.launch import Findings, Seat

LEAST_RATIO = 0.95
BATCH_S = 0.002
WORKERS = 2
TEAM = 2
SIDE = 256  # of the matrices that a team multiplies
WARM_UP_ROUNDS = 10
# Processes that end with their parent.
BUSY = """
import os, sys
parent = os.getppid()
if sys.argv[2] == "autogroup":
    os.setsid()
first = os.getpid()
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        parent = first
        break
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@dataclass(frozen=True)
class Condition:
    """What the ranks share the machine with.

    Attributes
    ----------
    quota
        Cores whose time the control group of the ranks may use.
    busy, where
        Number of busy processes, and where they run: "same", "cgroup" or "autogroup".
    job
        What the ranks themselves run beside: "loader" or "openmp".
    """

    name: str
    quota: float = float("inf")
    busy: int = 0
    where: str = "same"
    job: str = ""


CONDITIONS = (
    Condition("quiet"),
    *(Condition(f"quota {cores}", quota=cores) for cores in (0.5, 1.0, 1.5)),
    *(Condition(f"{n} busy, same group", busy=n) for n in (2, 4, 8)),
    *(Condition(f"{n} busy, other cgroup", busy=n, where="cgroup") for n in (2, 4, 8)),
    *(Condition(f"{n} busy, other autogroup", busy=n, where="autogroup") for n in (2, 4, 8)),
    Condition("DataLoader", job="loader"),
    Condition("OpenMP", job="openmp"),
)


# What a rank does


def burn(seconds: float) -> None:
    """Use so much time of a core, however long that takes."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Batches(IterableDataset[int]):
    """Batches without an end, each of which costs time of a core."""

    def __iter__(self) -> Iterator[int]:
        while True:
            burn(BATCH_S)
            yield 0


def multiply_for(seconds: float) -> Callable[[], None]:
    """Return a function whose team of threads takes about so much time of a core, all together."""
    torch.set_num_threads(TEAM)
    x = torch.rand(SIDE, SIDE)
    start = time.process_time()
    for _ in range(WARM_UP_ROUNDS):
        torch.mm(x, x)
    each = (time.process_time() - start) / WARM_UP_ROUNDS
    count = max(1, round(seconds / each)) if seconds else 0

    def compute() -> None:
        for _ in range(count):
            torch.mm(x, x)

    return compute


def make_compute(job: str, seconds: float, batches: Iterator[Any] | None) -> Callable[[], None]:
    if job == "openmp":
        return multiply_for(seconds)
    if batches is not None:

        def compute() -> None:
            next(batches)
            burn(seconds)

        return compute
    return lambda: burn(seconds)


def time_turn(compute: Callable[[], None], all_reduce: Callable[[], Any], rounds: int) -> float:
    """Return the seconds of a round."""
    start = time.perf_counter()
    for _ in range(rounds):
        compute()
        all_reduce()
    return (time.perf_counter() - start) / rounds


def slowest(seconds: float) -> float:
    """Return the greatest of all ranks, by Gloo."""
    greatest = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(greatest, dist.ReduceOp.MAX)
    return float(greatest)


def take_turns(
    compute: Callable[[], None], calls: dict[str, Callable[[], Any]], options: argparse.Namespace
) -> dict[str, float]:
    """Return the microseconds of a round by library: the median of its turns."""
    found: dict[str, list[float]] = {library: [] for library in calls}
    for turn in range(options.rounds):
        for library in list(calls)[:: -1 if turn % 2 else 1]:
            dist.barrier()
            warm_up = slowest(time_turn(compute, calls[library], WARM_UP_ROUNDS))
            rounds = max(options.least, min(options.most, int(options.seconds / warm_up)))
            found[library].append(slowest(time_turn(compute, calls[library], rounds)))
    return {library: statistics.median(times) * 1e6 for library, times in found.items()}


def worker(seat: Seat) -> Findings:
    options = seat.options
    loader = DataLoader(Batches(), batch_size=None, num_workers=WORKERS)
    batches = iter(loader) if options.job == "loader" else None
    groups = torch_peers.open_groups(seat)
    x = torch.zeros(KIB // 4)
    calls: dict[str, Callable[[], Any]] = {
        name: lambda group=group: dist.all_reduce(x, group=group) for name, group in groups.items()
    }
    if options.mpi:
        from common import mpi_peers

        array = x.numpy()
        calls["mpi"] = lambda: mpi_peers.all_reduce(array, "sum")
    cells = []
    for compute_ms in options.compute:
        compute = make_compute(options.job, compute_ms / 1e3, batches)
        us = take_turns(compute, calls, options)
        cells.append(Cell(f"{options.condition}, {compute_ms:g} ms", seat.ranks, KIB, us))
    dist.destroy_process_group()
    return {"cells": cells}


# What the benchmark does around them


@contextlib.contextmanager
def busy_processes(condition: Condition) -> Iterator[None]:
    """Keep processes busy."""
    with contextlib.ExitStack() as stack:
        command = [sys.executable, "-S", "-c", BUSY, str(condition.busy), condition.where]
        if condition.where == "cgroup":
            command = stack.enter_context(cgroups.make_group("busy")).command(command)
        if condition.busy:
            process = subprocess.Popen(command)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield


def measure(condition: Condition, options: argparse.Namespace, ranks: int) -> Findings:
    """Run the ranks under a condition.

    Raises
    ------
    NoGroupsError
        A control group cannot be made.
    """
    mpi = find_mpi()
    launch = mpi.launch if mpi else on_this_host
    given = argparse.Namespace(**vars(options), condition=condition.name, job=condition.job)
    with contextlib.ExitStack() as stack:
        if condition.quota == float("inf") and condition.where != "cgroup":
            stack.enter_context(busy_processes(condition))
            return run_ranks(given, ranks, launch)
        group = stack.enter_context(cgroups.make_group("ranks"))
        group.limit(condition.quota)
        stack.enter_context(busy_processes(condition))
        return run_ranks(
            given, ranks, lambda command, n: [group.command(c) for c in launch(command, n)]
        )


def find_mpi() -> mpis.Mpi | None:
    return next((mpi.yielding() for mpi in mpis.OPEN_MPIS if mpi.is_here), None)


def why_not(condition: Condition) -> str:
    """Return why a condition cannot be made here; empty where it can."""
    if condition.where != "autogroup":
        return ""
    enabled = Path("/proc/sys/kernel/sched_autogroup_enabled")
    if not enabled.exists() or enabled.read_text().strip() != "1":
        return "kernel.sched_autogroup_enabled is not 1"
    return "" if cgroups.is_in_root_group() else "this process is in a control group"


def measure_all(options: argparse.Namespace, ranks: int) -> Findings:
    cells = []
    for condition in CONDITIONS:
        if not any(name in condition.name for name in options.conditions):
            continue
        reason = why_not(condition)
        try:
            if not reason:
                cells += measure(condition, options, ranks)["cells"]
                print(_row(cells[-1]), flush=True)
        except cgroups.NoGroupsError as error:
            reason = str(error)
        if reason:
            print(f"not measured: {condition.name}: {reason}", flush=True)
    return {"cells": cells}


def _row(cell: Cell) -> str:
    times = " / ".join(f"{name} {us:.0f}" for name, us in cell.us.items())
    return f"{cell.ranks} ranks, {cell.collective}: {cell.ratio or 0:.2f}x, us {times}"


def summarize(cells: list[Cell]) -> dict[str, float]:
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    return {"mean": geometric_mean(ratios), "worst": min(ratios)} if ratios else {}


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=0.5)
    parser.set_defaults(rounds=7, least=20, most=20_000, pin=False)
    parser.add_argument("--compute", type=float, nargs="+", default=[2.0], help="ms in a round")
    parser.add_argument(
        "--conditions", nargs="+", default=[""], help="parts of their names; default: all"
    )
    parser.add_argument("--pin", action="store_true", help="bind rank i to core i mod cores")
    options = parser.parse_args()
    options.mpi = find_mpi() is not None
    if not options.mpi:
        print("not measured: Open MPI is not here; tools/setup_benchmarks.sh installs it")
    findings = report.repeat(options, lambda ranks: measure_all(options, ranks))
    cells = findings["cells"]
    for cell in cells:
        print(_row(cell))
    summary = summarize(cells)
    print(" ".join(f"{name} {value:.2f}x" for name, value in summary.items()))
    report.write("cpu_busy", options, findings, {"cells": summary})
    return 1 if any((cell.ratio or 1) < LEAST_RATIO for cell in cells) else 0


if __name__ == "__main__":
    run_script(main, worker)

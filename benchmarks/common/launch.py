# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a benchmark: each is the script again, in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

from .cells import Cell

Findings: TypeAlias = dict[str, list[Cell]]
# Makes the commands to start from a rank's own command and the number of ranks.
Launcher: TypeAlias = Callable[[list[str], int], list[list[str]]]

AS_RANK = "--as-rank"
# Rank and number of ranks, as launchers tell them.
PLACES = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
]
POLL_S = 0.2
EXIT_S = 10.0  # how long other ranks may take to leave when one has failed


@dataclass(frozen=True)
class Seat:
    """What a rank knows when it starts. ``folder`` is empty, and shared by all ranks of the run."""

    rank: int
    ranks: int
    folder: Path
    options: argparse.Namespace


def run_script(main: Callable[[], int], worker: Callable[[Seat], Findings]) -> NoReturn:
    """Be the program, or the rank that `run_ranks` started this process to be."""
    if sys.argv[1:2] == [AS_RANK]:
        _be_rank(worker, Path(sys.argv[2]))
        sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())


def _be_rank(worker: Callable[[Seat], Findings], folder: Path) -> None:
    names = next(names for names in PLACES if names[0] in os.environ)
    rank, ranks = (int(os.environ[name]) for name in names)
    options = argparse.Namespace(**json.loads((folder / "options.json").read_text()))
    if options.pin:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    found = worker(Seat(rank, ranks, folder, options))
    if rank == 0:
        records = {section: [cell.to_json() for cell in found[section]] for section in found}
        (folder / "findings.json").write_text(json.dumps(records))


def on_this_host(command: list[str], ranks: int) -> list[list[str]]:
    return [["env", f"RANK={rank}", f"WORLD_SIZE={ranks}", *command] for rank in range(ranks)]


def run_ranks(
    options: argparse.Namespace, ranks: int, launcher: Launcher = on_this_host
) -> Findings:
    """Start the ranks, wait for them, and return what rank 0's worker found.

    Exits when a rank fails; no process is left behind.
    """
    with tempfile.TemporaryDirectory(prefix="pccl-bench-") as name:
        folder = Path(name)
        (folder / "options.json").write_text(json.dumps(vars(options), default=str))
        command = [sys.executable, str(Path(sys.argv[0]).resolve()), AS_RANK, name]
        _run_all(launcher(command, ranks))
        records = json.loads((folder / "findings.json").read_text())
    return {section: [Cell.from_json(cell) for cell in records[section]] for section in records}


def _run_all(commands: list[list[str]]) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with _sigterm_later():
                processes.append(subprocess.Popen(command, env=environment))
        while any(process.poll() is None for process in processes):
            if any(process.returncode for process in processes):
                break
            time.sleep(POLL_S)
        for number, process in enumerate(processes):
            if process.returncode:
                sys.exit(f"process {number} of {len(processes)} ended with {process.returncode}")
    finally:
        _end(processes)


@contextlib.contextmanager
def _sigterm_later() -> Iterator[None]:
    """Keep a signal until the end: in the middle, a process may run that nobody knows of yet."""
    came: list[int] = []
    handler = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        for number in came:
            signal.raise_signal(number)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + EXIT_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

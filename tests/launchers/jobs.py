# SPDX-License-Identifier: Apache-2.0
"""Checks of one launcher: jobs of scripts that get nothing from the environment of the test."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from support.fake_pmi import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Start", "checks_of"]

RANKS = 4
STARTS = 20
JOB_S = 120.0
END_S = 60.0

SUM = """\
import numpy as np, pccl
comm = pccl.Communicator(timeout=60)
x = np.full(1000, comm.rank + 1.0)
comm.all_reduce(x)
print(f"rank {comm.rank} of {comm.world_size}: {x[0]:g}", flush=True)
"""
TORCH = """\
import torch, torch.distributed as dist
dist.init_process_group("pccl", init_method="pccl://")
x = torch.ones(1000) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {x[0]:g}", flush=True)
dist.destroy_process_group()
"""
MPI = """\
import sys
import numpy as np
def by_pccl():
    import pccl
    comm = pccl.Communicator(timeout=60)
    x = np.full(1000, comm.rank + 1.0)
    comm.all_reduce(x)
    return comm.rank, comm.world_size, x[0]
def by_mpi():
    from mpi4py import MPI
    return MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
if sys.argv[1] == "mpi first":
    by_mpi()
rank, size, total = by_pccl()
assert by_mpi() == total
print(f"rank {rank} of {size}: {total:g}", flush=True)
"""
ENDLESS = """\
import os, sys
import numpy as np, pccl
comm = pccl.Communicator(timeout=60)
with open(f"{sys.argv[1]}/{os.getpid()}", "w"):
    pass
while True:
    comm.all_reduce(np.ones(1000))
"""


@dataclasses.dataclass(frozen=True)
class Start:
    """The command of a launcher that starts four ranks of a Python script."""

    command: list[str]
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    python: str | None = None  # with mpi4py, for the same MPI

    def script(
        self, text: str, *arguments: str, python: str | None = None
    ) -> subprocess.Popen[str]:
        """Start a job; it is a session of its own."""
        return subprocess.Popen(
            [*self.command, python or sys.executable, "-c", text, *arguments],
            env=environment(**self.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def check_output(job: subprocess.Popen[str]) -> None:
    """Wait for a job, and compare what its ranks have printed."""
    try:
        out, _ = job.communicate(timeout=JOB_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        out, _ = job.communicate()
        raise AssertionError(f"the job has not ended after {JOB_S:g} s: {out}") from None
    total = RANKS * (RANKS + 1) // 2
    missing = [r for r in range(RANKS) if f"rank {r} of {RANKS}: {total}" not in out]
    if job.returncode != 0 or missing:
        raise AssertionError(f"exit code {job.returncode}, no right sum of ranks {missing}: {out}")


def starts_in_a_row(start: Start) -> None:
    """Run the script of five lines twenty times."""
    for _ in range(STARTS):
        check_output(start.script(SUM))


def two_jobs_at_once(start: Start) -> None:
    """Run two jobs on this host at the same time."""
    jobs = [start.script(SUM) for _ in range(2)]
    for job in jobs:
        check_output(job)


def torch_by_init_method(start: Start) -> None:
    """Run ``init_process_group("pccl", init_method="pccl://")``."""
    check_output(start.script(TORCH))


def mpi_in_the_same_process(start: Start) -> None:
    """Use mpi4py before pccl, and after it."""
    for order in ("mpi first", "pccl first"):
        check_output(start.script(MPI, order, python=start.python))


def a_dead_launcher_leaves_no_process(start: Start) -> None:
    """Kill the launcher while the ranks are busy; they must end."""
    with (
        tempfile.TemporaryDirectory(prefix="pccl-launcher-") as name,
        _ending(start.script(ENDLESS, name)) as job,
    ):
        folder = Path(name)
        _await(lambda: len(list(folder.iterdir())) == RANKS, "the ranks have not begun")
        ranks = [int(path.name) for path in folder.iterdir()]
        job.kill()
        _await(lambda: not any(map(_runs, ranks)), "the ranks go on without their launcher")


def checks_of(start: Start) -> list[Callable[[Start], None]]:
    """Return the checks that a launcher must pass."""
    common = [
        starts_in_a_row,
        two_jobs_at_once,
        torch_by_init_method,
        a_dead_launcher_leaves_no_process,
    ]
    return [*common, mpi_in_the_same_process] if start.python else common


@contextlib.contextmanager
def _ending(job: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield job
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def _await(holds: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + END_S
    while not holds():
        assert time.monotonic() < deadline, f"{complaint} after {END_S:g} s"
        time.sleep(0.1)

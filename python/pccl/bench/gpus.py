# SPDX-License-Identifier: Apache-2.0
"""Benchmark of collectives between GPUs of this machine (``pccl bench --gpus``), without torch.

As in nccl-tests, a burst of launches is enqueued after a barrier and awaited as a whole; its time
is that of the slowest rank, and the figure is the median over bursts. Results are checked once
before the timed launches.
"""

from __future__ import annotations

import functools
import statistics
from typing import TYPE_CHECKING

import numpy as np

from pccl._internal.local_ranks import run_ranks
from pccl.bench.cases import ROOT, Array, Case, time_calls
from pccl.bench.collectives import SECONDS_PER_ROW, Job, Row, slowest
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core import Communicator, DeviceGroup, DeviceMemory

__all__ = ["Buffers", "expected_seconds", "measure", "measured", "parse_gpus", "run"]

BURSTS = 5
MOST_LAUNCHES = 200  # per burst
LEAST_LAUNCHES = 5
MOST_GPUS = 8
SECONDS_PER_START = 5.0  # per process with a GPU


def parse_gpus(text: str) -> tuple[int, ...]:
    """Return the CUDA device numbers in ``text``, such as ``"0,1"``.

    Raises
    ------
    ValueError
        The list is malformed, has a number twice, or has more than 8 numbers.
    """
    numbers = text.split(",")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(f"no list of GPUs: {text!r}; they are written 0,1,2")
    gpus = tuple(map(int, numbers))
    if len(set(gpus)) < len(gpus):
        raise ValueError(f"a GPU is named twice in {text!r}")
    if len(gpus) > MOST_GPUS:
        raise ValueError(f"{len(gpus)} GPUs; a group has {MOST_GPUS} at most")
    return gpus


def expected_seconds(job: Job) -> float:
    """Return the estimated seconds of `run`."""
    return SECONDS_PER_START * job.ranks + 2 * SECONDS_PER_ROW * len(list(job.cases()))


def run(job: Job, gpus: tuple[int, ...]) -> Table[Row]:
    """Start the ranks of a job, and return all of its measurements; see `measured`."""
    return Table(measured(job, gpus))


def measured(job: Job, gpus: tuple[int, ...]) -> Iterator[Row]:
    """Start the ranks of a job, and yield each row after its measurement.

    Parameters
    ----------
    job
        Parameters of the benchmark.
    gpus
        CUDA device number of each rank.

    Raises
    ------
    ValueError
        The numbers of GPUs and ranks differ.
    pccl.Error
        A rank failed, or a GPU does not exist.
    """
    if len(gpus) != job.ranks:
        raise ValueError(f"{job.ranks} ranks on {len(gpus)} GPUs; each needs one")
    yield from run_ranks(functools.partial(_worker, job, gpus), job.ranks)


def _worker(
    job: Job,
    gpus: tuple[int, ...],
    rank: int,
    rendezvous: str,
    send: Callable[[object], None],
) -> None:
    from pccl import _core

    # Allocate before the rendezvous: without a GPU, no rank waits for another.
    largest = max(case.size for case in job.cases())
    buffers = Buffers(
        _core.DeviceMemory(device=gpus[rank], nbytes=largest),
        _core.DeviceMemory(device=gpus[rank], nbytes=largest),
    )
    comm = _core.Communicator(
        rank=rank, world_size=job.ranks, rendezvous=rendezvous, timeout=job.timeout, name="bench"
    )
    group = _core.DeviceGroup(
        rank=rank,
        world_size=job.ranks,
        rendezvous=f"{rendezvous}-gpus",
        device=gpus[rank],
        timeout=job.timeout,
        name="bench",
    )
    for case in job.cases():
        row = measure(comm, group, buffers, case)
        if rank == 0:
            send(row)
    comm.barrier()


class Buffers:
    """Input and output buffers of a rank on its GPU."""

    def __init__(self, source: DeviceMemory, target: DeviceMemory) -> None:
        self.source = source
        self.target = target

    def fill(self, case: Case, x: Array) -> None:
        """Write the input of a case."""
        (self.target if case.is_in_place else self.source).write(x)

    def launch(self, group: DeviceGroup, case: Case) -> None:
        """Launch a case on the default stream."""
        source = self.target if case.is_in_place else self.source
        group.launch(
            case.collective,
            input=source.address,
            output=self.target.address,
            count=case.count,
            dtype=case.dtype,
            op=case.op,
            root=ROOT,
        )


def measure(comm: Communicator, group: DeviceGroup, buffers: Buffers, case: Case) -> Row:
    """Check and time ``case``; every rank returns the same row."""

    def burst(launches: int) -> None:
        for _ in range(launches):
            buffers.launch(group, case)
        buffers.target.wait()
        group.check()

    x, out = case.buffers()
    buffers.target.write(out)
    x[:] = case.contribution(comm.rank)
    buffers.fill(case, x)
    burst(1)
    buffers.target.read(out)
    wrong = np.array([case.wrong(comm.rank, out)])
    comm.all_reduce(wrong)
    # With other values, repeated in-place sums would soon overflow to infinity.
    x[:] = 0
    buffers.fill(case, x)
    warm_up = slowest(comm, time_calls(lambda: burst(1), comm.barrier, BURSTS))
    per_burst = SECONDS_PER_ROW / BURSTS / statistics.median(warm_up)
    launches = int(np.clip(per_burst, LEAST_LAUNCHES, MOST_LAUNCHES))
    times = slowest(comm, time_calls(lambda: burst(launches), comm.barrier, BURSTS))
    return Row.of(case, statistics.median(times) / launches, int(wrong[0]))

# SPDX-License-Identifier: Apache-2.0
"""Benchmark of collectives between processes of this machine (``pccl bench``), without torch.

Each call starts after a barrier; its time is that of the slowest rank, and the figure is the median
over calls. Results are checked once before the timed calls.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

import numpy as np

from pccl.bench.cases import COLLECTIVES, ROOT, Case, ReduceOp, make_call, time_calls
from pccl.bench.on_ranks import on_ranks
from pccl.results import table
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pccl._core import Communicator

__all__ = [
    "Job",
    "Row",
    "bus_factor",
    "expected_call_seconds",
    "measured",
    "run",
    "slowest",
    "table_header",
]

WARM_UP_CALLS = 3
MOST_CALLS = 200
LEAST_CALLS = 5
SECONDS_PER_ROW = 0.5
# Parameters of the estimate for users; measured with 2 to 4 ranks on 2 cores.
SECONDS_PER_START = 0.5  # per process
SECONDS_PER_CALL = 2e-6
SECONDS_PER_BYTE = 1e-10  # per rank
SECONDS_PER_CHECKED_BYTE = 1e-9


def bus_factor(collective: str, ranks: int) -> float:
    """Return the ratio of bus to algorithm bandwidth, as in PERFORMANCE.md of nccl-tests."""
    if collective == "broadcast":
        return 1.0
    share = (ranks - 1) / ranks
    return 2 * share if collective == "all_reduce" else share


@dataclass(frozen=True)
class Job:
    """Parameters of a benchmark.

    Attributes
    ----------
    sizes
        Bytes of the whole buffer.
    dtype
        Name of a numpy dtype.
    timeout
        Maximum seconds of one call, or of the start of all ranks.
    """

    sizes: tuple[int, ...]
    collectives: tuple[str, ...] = COLLECTIVES
    ranks: int = 2
    dtype: str = "float32"
    op: str = "sum"
    timeout: float = 60.0

    def __post_init__(self) -> None:
        """Raise ValueError for unsupported parameters."""
        _require_known("collective", self.collectives, COLLECTIVES)
        _require_known("reduction", (self.op,), get_args(ReduceOp))
        if self.ranks < 1:
            raise ValueError(f"{self.ranks} ranks; there must be 1 or more")
        try:
            kind = np.dtype(self.dtype).kind
        except TypeError:
            kind = "O"
        if kind not in "biufc":
            raise ValueError(f"no dtype of numpy with numbers: {self.dtype!r}")

    def cases(self) -> Iterator[Case]:
        """Yield the cases in the order of measurement."""
        op = cast("ReduceOp", self.op)
        dtype = np.dtype(self.dtype).name
        for collective in self.collectives:
            for size in self.sizes:
                yield Case.of_bytes(collective, self.ranks, size, dtype, op)

    def expected_seconds(self) -> float:
        """Return the estimated seconds of `run` on an idle machine."""
        return SECONDS_PER_START * self.ranks + sum(map(_expected_seconds, self.cases()))


@dataclass(frozen=True)
class Row:
    """Row of the table, with the columns of nccl-tests.

    Attributes
    ----------
    size
        Bytes of the whole buffer.
    count
        Elements per block of a rank, or of the whole buffer for collectives without blocks.
    root
        Root of a broadcast, -1 for other collectives.
    time_us
        Microseconds: the median over calls of the time of the slowest rank.
    algbw, busbw
        Algorithm and bus bandwidth in GB/s (10^9 bytes per second).
    wrong
        Number of wrong elements, over all ranks.
    """

    collective: str
    size: int
    count: int
    type: str
    redop: str
    root: int
    time_us: float
    algbw: float
    busbw: float
    wrong: int

    @classmethod
    def of(cls, case: Case, seconds: float, wrong: int) -> Row:
        """Return the row of a measured case.

        Parameters
        ----------
        case
            Measured case.
        seconds
            Seconds per call.
        wrong
            Number of wrong elements, over all ranks.
        """
        algbw = case.size / seconds / 1e9
        return cls(
            collective=case.collective,
            size=case.size,
            count=case.count,
            type=case.dtype,
            redop=case.op if case.is_reduction else "none",
            root=ROOT if case.collective == "broadcast" else -1,
            time_us=seconds * 1e6,
            algbw=algbw,
            busbw=algbw * bus_factor(case.collective, case.ranks),
            wrong=wrong,
        )

    def row(self) -> table.Fields:
        """Return the fields."""
        return table.fields_of(self)

    def line(self) -> str:
        """Return the row with the columns of `table_header`."""
        return (
            f"{self.size:>11} {self.count:>11} {self.type:>10} {self.redop:>7} {self.root:>4}"
            f" {self.time_us:>9.2f} {self.algbw:>6.2f} {self.busbw:>6.2f} {self.wrong:>6}"
        )


def table_header() -> str:
    """Return the two header lines of the table."""
    return (
        f"#{'size':>10} {'count':>11} {'type':>10} {'redop':>7} {'root':>4}"
        f" {'time':>9} {'algbw':>6} {'busbw':>6} {'#wrong':>6}\n"
        f"#{'(B)':>10} {'(elements)':>11} {'':>10} {'':>7} {'':>4}"
        f" {'(us)':>9} {'(GB/s)':>6} {'(GB/s)':>6}"
    )


def run(job: Job) -> Table[Row]:
    """Start the ranks of a job, and return all of its measurements.

    Parameters
    ----------
    job
        Parameters of the benchmark.

    Returns
    -------
    Table of Row
        List in the order of ``job.cases()``, which notebooks display as a table.

    Raises
    ------
    pccl.Error
        A rank failed, or the build does not support the job.
    """
    return Table(measured(job))


def measured(job: Job) -> Iterator[Row]:
    """Start the ranks of a job, and yield each row after its measurement.

    Parameters
    ----------
    job
        Parameters of the benchmark.

    Returns
    -------
    iterator of Row
        Rows in the order of ``job.cases()``; the ranks end with the iteration.

    Raises
    ------
    pccl.Error
        A rank failed, or the build does not support the job.
    """
    yield from on_ranks(job, "bench", measure)


def measure(comm: Communicator, case: Case) -> Row:
    """Check and time ``case``; every rank returns the same row."""
    x, out = case.buffers()
    call = make_call(comm, case, x, out)
    x[:] = case.contribution(comm.rank)
    call()
    wrong = np.array([case.wrong(comm.rank, out)])
    comm.all_reduce(wrong)
    # With other values, repeated in-place sums would soon overflow to infinity.
    x[:] = 0
    warm_up = slowest(comm, time_calls(call, comm.barrier, WARM_UP_CALLS))
    repeats = int(np.clip(SECONDS_PER_ROW / statistics.median(warm_up), LEAST_CALLS, MOST_CALLS))
    times = slowest(comm, time_calls(call, comm.barrier, repeats))
    return Row.of(case, statistics.median(times), int(wrong[0]))


def slowest(comm: Communicator, times: list[float]) -> list[float]:
    """Return the maximum over ranks of the time of each call, in seconds."""
    slowest = np.array(times)
    comm.all_reduce(slowest, "max")
    return cast("list[float]", slowest.tolist())


def expected_call_seconds(case: Case) -> float:
    """Return the estimated seconds of a call on an idle machine."""
    turns = max(1.0, case.ranks / (os.cpu_count() or 1))
    return turns * case.ranks * (SECONDS_PER_CALL + case.size * SECONDS_PER_BYTE)


def _expected_seconds(case: Case) -> float:
    once = expected_call_seconds(case)
    timed = min(max(SECONDS_PER_ROW, LEAST_CALLS * once), MOST_CALLS * once)
    checked = case.size * (case.ranks + 3) * SECONDS_PER_CHECKED_BYTE
    return (1 + WARM_UP_CALLS) * once + timed + checked


def _require_known(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"no {what}: {name!r}; choose from {', '.join(known)}")

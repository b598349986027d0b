# SPDX-License-Identifier: Apache-2.0
"""Times collectives between processes of this machine, as ``pccl bench`` does; torch is not needed.

A call starts behind a barrier, its time is that of the slowest rank, and the figure is the median
over calls. Results are checked once before the calls that are timed.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

import numpy as np

from pccl import table
from pccl.bench.cases import COLLECTIVES, ROOT, Case, ReduceOp, make_call, time_calls
from pccl.bench.on_ranks import on_ranks
from pccl.table import Table

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
# What a user is told beforehand counts on these; measured with 2 to 4 ranks on 2 cores.
SECONDS_PER_START = 0.5  # of a process
SECONDS_PER_CALL = 2e-6
SECONDS_PER_BYTE = 1e-10  # of one rank
SECONDS_PER_CHECKED_BYTE = 1e-9


def bus_factor(collective: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth, as PERFORMANCE.md of nccl-tests has it."""
    if collective == "broadcast":
        return 1.0
    share = (ranks - 1) / ranks
    return 2 * share if collective == "all_reduce" else share


@dataclass(frozen=True)
class Job:
    """What to measure.

    Attributes
    ----------
    sizes
        Bytes of the whole buffer.
    dtype
        A numpy name.
    timeout
        Seconds that one call, or the start of all ranks, may take.
    """

    sizes: tuple[int, ...]
    collectives: tuple[str, ...] = COLLECTIVES
    ranks: int = 2
    dtype: str = "float32"
    op: str = "sum"
    timeout: float = 60.0

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be measured."""
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
        """Give what is measured, in the order in which it is."""
        op = cast("ReduceOp", self.op)
        dtype = np.dtype(self.dtype).name
        for collective in self.collectives:
            for size in self.sizes:
                yield Case.of_bytes(collective, self.ranks, size, dtype, op)

    def expected_seconds(self) -> float:
        """Return about how long `run` takes on a quiet machine."""
        return SECONDS_PER_START * self.ranks + sum(map(_expected_seconds, self.cases()))


@dataclass(frozen=True)
class Row:
    """A line of the table, with the columns of nccl-tests.

    Attributes
    ----------
    size
        Bytes of the whole buffer.
    count
        Elements of one rank's block; of the whole buffer where there are no blocks.
    root
        The root of a broadcast, -1 for the others.
    time_us
        Microseconds: the median over calls of the slowest rank's time.
    algbw, busbw
        GB/s (10^9 bytes).
    wrong
        Elements with a wrong result, over all ranks.
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
        """Return the line of a measured case.

        Parameters
        ----------
        case
            What was measured.
        seconds
            Of one call.
        wrong
            Elements with a wrong result, over all ranks.
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
        """Return its fields."""
        return table.fields_of(self)

    def line(self) -> str:
        """Return it under the columns of `table_header`."""
        return (
            f"{self.size:>11} {self.count:>11} {self.type:>10} {self.redop:>7} {self.root:>4}"
            f" {self.time_us:>9.2f} {self.algbw:>6.2f} {self.busbw:>6.2f} {self.wrong:>6}"
        )


def table_header() -> str:
    """Return the two lines above the rows."""
    return (
        f"#{'size':>10} {'count':>11} {'type':>10} {'redop':>7} {'root':>4}"
        f" {'time':>9} {'algbw':>6} {'busbw':>6} {'#wrong':>6}\n"
        f"#{'(B)':>10} {'(elements)':>11} {'':>10} {'':>7} {'':>4}"
        f" {'(us)':>9} {'(GB/s)':>6} {'(GB/s)':>6}"
    )


def run(job: Job) -> Table[Row]:
    """Measure all of a job, on ranks that it starts.

    Parameters
    ----------
    job
        What to measure.

    Returns
    -------
    Table of Row
        In the order of ``job.cases()``: a list, which notebooks show as a table.

    Raises
    ------
    pccl.Error
        A rank failed, or the build cannot do what the job asks for.
    """
    return Table(measured(job))


def measured(job: Job) -> Iterator[Row]:
    """Start the ranks, and give each row when it is measured.

    Parameters
    ----------
    job
        What to measure.

    Returns
    -------
    iterator of Row
        In the order of ``job.cases()``; the ranks end with it.

    Raises
    ------
    pccl.Error
        A rank failed, or the build cannot do what the job asks for.
    """
    yield from on_ranks(job, "bench", measure)


def measure(comm: Communicator, case: Case) -> Row:
    """Check ``case`` and time it; the same on every rank."""
    x, out = case.buffers()
    call = make_call(comm, case, x, out)
    x[:] = case.contribution(comm.rank)
    call()
    wrong = np.array([case.wrong(comm.rank, out)])
    comm.all_reduce(wrong)
    # Else every in-place sum would double the values, and soon add infinities.
    x[:] = 0
    warm_up = slowest(comm, time_calls(call, comm.barrier, WARM_UP_CALLS))
    repeats = int(np.clip(SECONDS_PER_ROW / statistics.median(warm_up), LEAST_CALLS, MOST_CALLS))
    times = slowest(comm, time_calls(call, comm.barrier, repeats))
    return Row.of(case, statistics.median(times), int(wrong[0]))


def slowest(comm: Communicator, times: list[float]) -> list[float]:
    """Return the greatest time of all ranks for each call, in seconds."""
    slowest = np.array(times)
    comm.all_reduce(slowest, "max")
    return cast("list[float]", slowest.tolist())


def expected_call_seconds(case: Case) -> float:
    """Return about how long a call takes on a quiet machine."""
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

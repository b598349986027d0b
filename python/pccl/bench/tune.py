# SPDX-License-Identifier: Apache-2.0
"""Measurement of the fastest algorithms on this machine (``pccl tune``), without torch.

For each collective and size, all algorithms run in turns in the same processes. The figure is the
median over calls of the time of the slowest rank, beside the prediction of the cost model. The
results are stored in a file in the user's cache. Rank 0 of a group reads the file and sends it to
the other ranks, so that all ranks make the same choice.
"""

from __future__ import annotations

import functools
import math
import os
import statistics
import time
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pccl._core import Communicator, topology_hash, tuning_path
from pccl._internal.whole_file import write_whole
from pccl.bench.cases import COLLECTIVES, Case, make_call_by, time_calls
from pccl.bench.collectives import SECONDS_PER_START, expected_call_seconds, slowest
from pccl.bench.on_ranks import on_ranks
from pccl.bench.sizes import sizes_between
from pccl.results import table
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "Cell",
    "Job",
    "busy_share",
    "check_kept",
    "measured",
    "path",
    "ranks_to_measure",
    "run",
    "save",
    "table_of",
]

HEADING = (
    "# The fastest algorithm: collective, ranks of one host, bytes of a block from which on.\n"
)
# Minimum relative gain for a change of algorithm: smaller differences are noise.
MARGIN = 0.03
# Only two ranks may know the length of a block, so one algorithm serves all sizes.
ONE_CHOICE = ("all_to_all",)
USUAL_WAYS = 9  # algorithms per collective
# Upper bound for the load of services on an idle machine.
QUIET_SHARE = 0.1
WARM_UP_CALLS = 2
LEAST_CALLS = 3
MOST_CALLS = 200


@dataclass(frozen=True)
class Job:
    """Parameters of the tuning.

    Attributes
    ----------
    sizes
        Bytes of the whole buffer, in ascending order.
    rounds
        Number of turns of each algorithm in a cell.
    seconds
        Duration of a turn.
    timeout
        Maximum seconds of one call, or of the start of all ranks.
    transports
        Transports to use, such as ``"tcp"``; empty: the value of ``PCCL_TRANSPORTS``.
    """

    ranks: int
    collectives: tuple[str, ...] = COLLECTIVES
    sizes: tuple[int, ...] = sizes_between(1 << 10, 64 << 20, 4)
    rounds: int = 3
    seconds: float = 0.02
    timeout: float = 60.0
    transports: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for unsupported parameters."""
        if self.ranks < 2:
            raise ValueError(f"{self.ranks} ranks; there is a choice from 2 on")
        if self.rounds < 1:
            raise ValueError(f"{self.rounds} rounds; there must be 1 or more")
        if unknown := set(self.collectives) - set(COLLECTIVES):
            raise ValueError(
                f"no collective: {unknown.pop()!r}; choose from {', '.join(COLLECTIVES)}"
            )

    def cases(self) -> Iterator[Case]:
        """Yield the cases in the order of measurement."""
        for collective in self.collectives:
            for size in self.sizes:
                yield Case.of_bytes(collective, self.ranks, size)

    def expected_seconds(self) -> float:
        """Return the estimated seconds of `run` on an idle machine."""
        turns = USUAL_WAYS * self.rounds
        return SECONDS_PER_START * self.ranks + sum(
            turns * max(self.seconds, (WARM_UP_CALLS + LEAST_CALLS) * expected_call_seconds(case))
            for case in self.cases()
        )


@dataclass(frozen=True)
class Cell:
    """Times of all algorithms for one collective at one size.

    Attributes
    ----------
    size, block
        Bytes of the whole buffer, and of the longest block.
    chosen
        Algorithm that a group chooses at present.
    us
        Measured microseconds by algorithm.
    predicted_us
        Predicted microseconds by algorithm, from the cost model.
    capsules
        Capsules among the algorithms, by name, with the first 16 digits of their digests.
    shares_memory
        Whether the ranks used shared memory, the default on one host.
    """

    collective: str
    ranks: int
    size: int
    block: int
    chosen: str
    us: dict[str, float]
    predicted_us: dict[str, float]
    capsules: dict[str, str] = field(default_factory=dict)
    shares_memory: bool = True

    @property
    def best(self) -> str:
        """Fastest algorithm."""
        return min(self.us, key=self.us.__getitem__)

    @property
    def loss(self) -> float:
        """Time of the chosen algorithm divided by the time of the best."""
        return self.us[self.chosen] / self.us[self.best]

    def row(self) -> table.Fields:
        """Return the fields, the best, the loss, and microseconds columns by algorithm."""
        fields = table.fields_of(self)
        del fields["us"], fields["predicted_us"], fields["capsules"]
        fields |= {"best": self.best, "loss": self.loss}
        for algorithm, us in sorted(self.us.items()):
            fields[f"{algorithm}_us"] = us
            fields[f"{algorithm}_predicted_us"] = self.predicted_us[algorithm]
        return fields


def busy_share(seconds: float = 0.25) -> float:
    """Return the load of other processes on all cores, 0 to 1, while this process sleeps."""
    idle, total = _core_times()
    time.sleep(seconds)
    idle_then, total_then = _core_times()
    return 1 - (idle_then - idle) / max(total_then - total, 1)


def _core_times() -> tuple[int, int]:
    """Return the idle and I/O wait ticks of all cores, and all ticks (proc(5))."""
    cores = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    ticks = [int(word) for word in cores.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def ranks_to_measure() -> tuple[int, ...]:
    """Return 2, 4 and the further powers of two up to the number of cores."""
    return sizes_between(2, max(4, os.cpu_count() or 1), 2)


def run(job: Job) -> Table[Cell]:
    """Start the ranks of a job, and return its cells, which notebooks display as a table.

    Raises
    ------
    pccl.Error
        A rank failed.
    """
    return Table(measured(job))


def measured(job: Job) -> Iterator[Cell]:
    """Start the ranks of a job, and yield each cell after its measurement.

    Raises
    ------
    pccl.Error
        A rank failed.
    """
    measure = functools.partial(_measure, job)
    yield from on_ranks(job, "tune", measure, transports=job.transports)


def _measure(job: Job, comm: Communicator, case: Case) -> Cell:
    ways = comm.explain(case.collective, case.size)
    x, out = case.buffers()
    calls = {way.algorithm: make_call_by(way.algorithm, comm, case, x, out) for way in ways}
    found: dict[str, list[float]] = {algorithm: [] for algorithm in calls}
    for turn in range(job.rounds):
        for algorithm in sorted(calls, reverse=bool(turn % 2)):
            call = calls[algorithm]
            once = min(slowest(comm, time_calls(call, comm.barrier, WARM_UP_CALLS)))
            repeats = int(np.clip(job.seconds / once, LEAST_CALLS, MOST_CALLS))
            times = slowest(comm, time_calls(call, comm.barrier, repeats))
            found[algorithm].append(statistics.median(times))
    chosen = next(way.algorithm for way in ways if way.is_chosen)
    block = case.count * np.dtype(case.dtype).itemsize
    us = {algorithm: statistics.median(times) * 1e6 for algorithm, times in found.items()}
    predicted = {way.algorithm: way.seconds * 1e6 for way in ways}
    capsules = {each.name: each.digest for each in comm.capsules() if each.name in calls}
    return Cell(
        collective=case.collective,
        ranks=case.ranks,
        size=case.size,
        block=block,
        chosen=chosen,
        us=us,
        predicted_us=predicted,
        capsules=capsules,
        shares_memory=any(way.over == "shm" for way in ways),
    )


def check_kept(cell: Cell) -> None:
    """Raise ValueError for a cell without shared memory: groups with it must not use the cell."""
    if not cell.shares_memory:
        raise ValueError(
            "these ranks share no memory, and those that do would choose by what is kept: unset"
            " PCCL_TRANSPORTS, or add shm to it; --dry-run measures over any transports"
        )


def table_of(cells: Iterable[Cell]) -> str:
    """Return the text of a tuning file for ``cells`` in the order of `run`.

    Raises
    ------
    ValueError
        The ranks used no shared memory (``PCCL_TRANSPORTS=tcp``).
    """

    def group(cell: Cell) -> tuple[int, str]:
        return cell.ranks, cell.collective

    known = list(cells)
    for cell in known:
        check_kept(cell)
    names = {
        name: f"{name}@{digest}" for cell in known for name, digest in sorted(cell.capsules.items())
    }
    lines = [f"topology {topology_hash()}\n", *(f"capsule {name}\n" for name in names.values())]
    for (ranks, collective), some in groupby(known, group):
        choose = _one_choice if collective in ONE_CHOICE else _choices
        for from_bytes, algorithm in choose(list(some)):
            name = names.get(algorithm, algorithm)
            lines.append(f"{collective} {ranks} {from_bytes} {name}\n")
    return HEADING + "".join(lines)


def _choices(cells: list[Cell]) -> Iterator[tuple[int, str]]:
    chosen = cells[0].best
    yield 0, chosen
    for before, cell in pairwise(cells):
        if cell.us[cell.best] < cell.us[chosen] * (1 - MARGIN):
            chosen = cell.best
            yield math.isqrt(before.block * cell.block), chosen


def _one_choice(cells: list[Cell]) -> Iterator[tuple[int, str]]:
    def loss(algorithm: str) -> float:
        return math.prod(cell.us[algorithm] / cell.us[cell.best] for cell in cells)

    yield 0, min(cells[0].us, key=loss)


def path() -> Path:
    """Return the path of the tuning file that groups on this machine read.

    Raises
    ------
    ValueError
        The environment defines no path for the file.
    """
    if not (found := tuning_path()):
        raise ValueError("no place for the file: set PCCL_TUNING_FILE, XDG_CACHE_HOME or HOME")
    return Path(found)


def save(table: str, file: Path) -> None:
    """Write ``table`` atomically: concurrent readers get the complete old or new file."""
    write_whole(file, table)

# SPDX-License-Identifier: Apache-2.0
"""Benchmark of a capsule beside the choice of a group without it, on this machine."""

from __future__ import annotations

import functools
import statistics
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pccl._internal.local_ranks import run_ranks
from pccl.bench.cases import COLLECTIVES, Case, make_call, time_calls
from pccl.bench.collectives import LEAST_CALLS, MOST_CALLS, SECONDS_PER_ROW, WARM_UP_CALLS, slowest
from pccl.errors import UnsupportedError
from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core import Communicator, Operator
    from pccl.bench.cases import Array, Call

__all__ = ["Row", "call_of", "measured"]

TIMEOUT_S = 60.0


class Row(NamedTuple):
    """Measurement of a capsule at one size.

    Attributes
    ----------
    size
        Bytes of the whole buffer.
    capsule_us, chosen_us
        Microseconds of the capsule, and of the group's choice without it: the median over calls of
        the time of the slowest rank.
    chosen
        Algorithm that the group chooses without the capsule.
    wrong
        Number of wrong elements in the results of the capsule, over all ranks.
    """

    size: int
    capsule_us: float
    chosen_us: float
    chosen: str
    wrong: int

    def row(self) -> table.Fields:
        """Return the fields."""
        return table.fields_of(self)

    @staticmethod
    def header() -> str:
        """Return the header line of the table."""
        return f"#{'size (B)':>12} {'capsule (us)':>13} {'chosen (us)':>13} {'chosen':>20} #wrong"

    def line(self) -> str:
        """Return the row with the columns of ``header``."""
        return (
            f"{self.size:>13} {self.capsule_us:>13.2f} {self.chosen_us:>13.2f} "
            f"{self.chosen:>20} {self.wrong:>6}"
        )


def measured(data: bytes, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Start the ranks of a capsule, and yield each row after its measurement.

    Parameters
    ----------
    data
        Bytes of the capsule.
    sizes
        Bytes of the whole buffer.

    Raises
    ------
    UnsupportedError
        The benchmark does not support the collective or the root of the capsule.
    """
    from pccl._core import Capsule  # not at the top: `pccl --help` needs no extension module

    schedule = Capsule.parse(data).schedule
    if schedule.collective not in COLLECTIVES or schedule.root != 0:
        raise UnsupportedError(
            f"{schedule.collective} from root {schedule.root} is not measured; there are "
            f"{', '.join(COLLECTIVES)}, from root 0"
        )
    yield from run_ranks(functools.partial(_worker, data, sizes), schedule.ranks)


def _worker(
    data: bytes, sizes: tuple[int, ...], rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    from pccl._core import Capsule, Communicator

    capsule = Capsule.parse(data)
    ranks, collective = capsule.schedule.ranks, capsule.schedule.collective
    comm = Communicator(
        rank=rank, world_size=ranks, rendezvous=rendezvous, timeout=TIMEOUT_S, name="bench"
    )
    operator = comm.load(capsule, "by name")
    for size in sizes:
        row = _measure(comm, operator, Case.of_bytes(collective, ranks, size))
        if rank == 0:
            send(row)
    comm.barrier()


def _measure(comm: Communicator, operator: Operator, case: Case) -> Row:
    x, out = case.buffers()
    by_capsule = call_of(operator, case, x, out)
    x[:] = case.contribution(comm.rank)
    by_capsule()
    wrong = np.array([case.wrong(comm.rank, out)])
    comm.all_reduce(wrong)
    x[:] = 0
    capsule, chosen = _medians(comm, [by_capsule, make_call(comm, case, x, out)])
    ways = comm.explain(case.collective, case.size)
    name = next(way.algorithm for way in ways if way.is_chosen)
    return Row(case.size, capsule * 1e6, chosen * 1e6, name, int(wrong[0]))


def _medians(comm: Communicator, calls: list[Call]) -> list[float]:
    """Return the median of each call in alternating turns, so that other load affects all."""
    once = max(
        statistics.median(slowest(comm, time_calls(call, comm.barrier, WARM_UP_CALLS)))
        for call in calls
    )
    repeats = int(np.clip(SECONDS_PER_ROW / once / 10, 1, MOST_CALLS // 10))
    times: list[list[float]] = [[] for _ in calls]
    while len(times[0]) < max(LEAST_CALLS, 10 * repeats):
        for call, found in zip(calls, times, strict=True):
            found += slowest(comm, time_calls(call, comm.barrier, repeats))
    return [statistics.median(found) for found in times]


def call_of(operator: Operator, case: Case, x: Array, out: Array) -> Call:
    """Return a function that runs ``case`` once with an operator on the buffers of this rank."""
    if case.is_in_place:
        return lambda: operator.run(out)
    return lambda: operator.run(x, out)

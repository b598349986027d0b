"""Calls that differ from one to the next, as those of programs do, over numpy arrays.

    python benchmarks/cpu_mixed.py --ranks 2 4 --runs 3

Forty calls of 256 B to 10 KiB follow each other, and begin again: all alike, of forty lengths, with
two operators in turn, from each root in turn, of five collectives in turn. pccl and the
MPIs take turns in the same processes, as in cpu_numpy; a figure is what a call takes in the mean.
Exits with status 1 when a mix is slower than the fastest MPI.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from common import mpis, report
from common.cells import Cell
from common.launch import run_script
from common.timing import Budget, Team, random_input, random_numbers, take_turns

import pccl
from pccl.bench.cases import Case, make_call
from pccl.bench.names import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from common.launch import Findings, Seat

    from pccl.bench.cases import Array, Call

CALLS = 40
STEP = 64  # elements: 256 B
USUAL = CALLS // 2 * STEP


def worker(seat: Seat) -> Findings:
    from common import mpi_peers

    store = f"file://{seat.folder}/store"
    comm = pccl.Communicator(rank=seat.rank, world_size=seat.ranks, rendezvous=store)
    team = Team(seat.rank, comm.barrier, mpi_peers.slowest)
    ours = mixes(seat, comm.all_reduce, comm.broadcast, functools.partial(make_call, comm))
    theirs = mixes(seat, mpi_peers.all_reduce, mpi_peers.broadcast, mpi_peers.make_call)
    cells = []
    for name, calls in ours.items():
        both = {"pccl": one_after_the_other(calls), "mpi": one_after_the_other(theirs[name])}
        us = take_turns(both, team, Budget.of(seat.options))
        of_call = {library: time / CALLS for library, time in us.items()}
        cells.append(Cell(name, seat.ranks, 4 * USUAL, of_call))
    comm.shutdown()
    return {"cells": cells}


def mixes(
    seat: Seat,
    all_reduce: Callable[[Array, Any], object],
    broadcast: Callable[[Array, int], object],
    make: Callable[[Case, Array, Array], Call],
) -> dict[str, list[Call]]:
    """Return forty calls of each mix, by one library."""

    def reduced(elements: int, op: str) -> Call:
        return functools.partial(all_reduce, random_numbers(seat.rank, elements), op)

    def made(collective: str) -> Call:
        case = Case(collective, seat.ranks, USUAL // seat.ranks)
        x, out = case.buffers()
        x[:] = random_input(case, seat.rank)
        return make(case, x, out)

    x = random_numbers(seat.rank, USUAL)
    return {
        "alike": CALLS * [reduced(USUAL, "max")],
        "lengths": [reduced(STEP * (i + 1), "max") for i in range(CALLS)],
        "operators": CALLS // 2 * [reduced(USUAL, "max"), reduced(USUAL, "min")],
        "roots": [functools.partial(broadcast, x, i % seat.ranks) for i in range(CALLS)],
        "collectives": CALLS // len(COLLECTIVES) * [made(name) for name in COLLECTIVES],
    }


def one_after_the_other(calls: list[Call]) -> Call:
    def run() -> None:
        for call in calls:
            call()

    return run


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2, 4], seconds=0.1)
    mpis.add_choice(parser)
    options = parser.parse_args()
    found = mpis.chosen(options)
    findings = report.repeat(options, lambda ranks: mpis.run_each(options, ranks, found))
    report.show(findings["cells"])
    summaries = {"cells": report.show_summary(findings["cells"])}
    report.write("cpu_mixed", options, findings, summaries)
    return report.name_slower(findings["cells"])


if __name__ == "__main__":
    run_script(main, worker)

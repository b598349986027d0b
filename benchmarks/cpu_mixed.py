# SPDX-License-Identifier: Apache-2.0
"""Calls that differ from one to the next, as those of programs do, over numpy arrays.

    python benchmarks/cpu_mixed.py --ranks 2 4 --runs 3

Forty calls of 256 B to 10 KiB follow each other, and begin again: all alike, of forty lengths, with
two operators in turn, from each root in turn, of five collectives in turn. pccl and the MPIs take
turns in the same processes, as in cpu_numpy; a figure is what a call takes in the mean.
Exits with status 1 when a mix is slower than the fastest MPI.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
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


@dataclass(frozen=True)
class Mix:
    """Some forty calls by one library, and the arrays in which their results are."""

    calls: list[Call]
    results: list[Array]

    def run(self) -> None:
        for call in self.calls:
            call()


def worker(seat: Seat) -> Findings:
    from common import mpi_peers

    store = f"file://{seat.folder}/store"
    comm = pccl.Communicator(rank=seat.rank, world_size=seat.ranks, rendezvous=store)
    team = Team(seat.rank, comm.barrier, mpi_peers.slowest)
    ours = mixes(seat, comm.all_reduce, comm.broadcast, functools.partial(make_call, comm))
    theirs = mixes(seat, mpi_peers.all_reduce, mpi_peers.broadcast, mpi_peers.make_call)
    cells = []
    for name, mix in ours.items():
        both = {"pccl": mix.run, "mpi": theirs[name].run}
        compare(name, mix, theirs[name])
        us = take_turns(both, team, Budget.of(seat.options))
        of_call = {library: time / len(mix.calls) for library, time in us.items()}
        cells.append(Cell(name, seat.ranks, 4 * USUAL, of_call))
    comm.shutdown()
    return {"cells": cells}


def mixes(
    seat: Seat,
    all_reduce: Callable[[Array, Any], object],
    broadcast: Callable[[Array, int], object],
    make: Callable[[Case, Array, Array], Call],
) -> dict[str, Mix]:
    """Return all mixes by one library."""

    def mix(steps: list[tuple[Call, Array]]) -> Mix:
        calls, results = zip(*steps, strict=True)
        return Mix(CALLS // len(steps) * list(calls), list(results))

    def reduced(elements: int, op: str) -> tuple[Call, Array]:
        x = random_numbers(seat.rank, elements)
        return functools.partial(all_reduce, x, op), x

    def sent(root: int) -> tuple[Call, Array]:
        x = random_numbers(seat.rank, USUAL)
        return functools.partial(broadcast, x, root), x

    def made(collective: str) -> tuple[Call, Array]:
        case = Case(collective, seat.ranks, USUAL // seat.ranks)
        x, out = case.buffers()
        x[:] = random_input(case, seat.rank)
        return make(case, x, out), out

    return {
        "alike": mix([reduced(USUAL, "max")]),
        "lengths": mix([reduced(STEP * (i + 1), "max") for i in range(CALLS)]),
        "operators": mix([reduced(USUAL, op) for op in ("max", "min")]),
        "roots": mix([sent(root) for root in range(seat.ranks)]),
        "collectives": mix([made(name) for name in COLLECTIVES]),
    }


def compare(name: str, ours: Mix, theirs: Mix) -> None:
    """Run both once.

    Raises
    ------
    ArithmeticError
        Their results differ by more than the order of sums makes.
    """
    ours.run()
    theirs.run()
    for number, (x, y) in enumerate(zip(ours.results, theirs.results, strict=True)):
        if not np.allclose(x, y, rtol=1e-5, atol=0):
            raise ArithmeticError(f"{name}: result {number} of pccl and MPI differs")


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2, 4], seconds=0.1)
    mpis.add_choice(parser)
    options = parser.parse_args()
    found = mpis.chosen(options)
    findings = report.repeat(options, lambda ranks: mpis.run_each(options, ranks, found))
    return report.finish("cpu_mixed", options, findings)


if __name__ == "__main__":
    run_script(main, worker)

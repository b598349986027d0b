# SPDX-License-Identifier: Apache-2.0
"""An operator that has its buffers beside the call that reads them each time, over numpy arrays.

    python benchmarks/cpu_operator.py --ranks 2 --sizes 1K --collectives all_reduce --runs 5

Both are pccl's, on the same ranks, turn and turn about: ``operator.run()`` beside
``comm.all_reduce(x)``, and ``operator.execute().wait()`` beside ``async_op=True``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from common import report
from common.cells import Cell
from common.launch import run_ranks, run_script
from common.timing import Budget, Team, measure_case

import pccl
from pccl.bench.cases import Case, make_call
from pccl.bench.collectives import slowest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.launch import Findings, Seat

    from pccl.bench.cases import Array, Call

SIZES = [1024, 64 * 1024]


def worker(seat: Seat) -> Findings:
    store = f"file://{seat.folder}/store"
    comm = pccl.Communicator(rank=seat.rank, world_size=seat.ranks, rendezvous=store)
    team = Team(seat.rank, comm.barrier, functools.partial(slowest, comm))
    budget = Budget.of(seat.options)
    found: Findings = {"synchronous": [], "asynchronous": []}
    for collective in seat.options.collectives:
        for size in seat.options.sizes:
            case = Case.of_bytes(collective, seat.ranks, size)
            x, out = case.buffers()
            for section, calls in ways(comm, case, x, out).items():
                us = measure_case(calls, case, (x, out), team, budget)
                found[section].append(Cell(collective, seat.ranks, size, us))
    comm.shutdown()
    return found


def ways(
    comm: pccl.Communicator, case: Case, x: Array, out: Array
) -> Mapping[str, Mapping[str, Call]]:
    """Return what is timed: by section, an operator ("pccl") and the call that it stands for."""
    buffers = (out,) if case.is_in_place else (x, out)
    operator = comm.operator(case.collective, *buffers)
    by_name = functools.partial(getattr(comm, case.collective), *buffers[::-1])
    return {
        "synchronous": {
            "pccl": lambda: operator.run(),  # as many Python frames as the other
            "call": make_call(comm, case, x, out),
        },
        "asynchronous": {
            "pccl": lambda: operator.execute().wait(),
            "call": lambda: by_name(async_op=True).wait(),
        },
    }


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=0.1)
    report.add_cells(parser, SIZES)
    options = parser.parse_args()
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks))
    summaries = {}
    for section, cells in findings.items():
        print(section)
        report.show(cells)
        summaries[section] = report.show_summary(cells)
    report.write("cpu_operator", options, findings, summaries)
    return 0


if __name__ == "__main__":
    run_script(main, worker)

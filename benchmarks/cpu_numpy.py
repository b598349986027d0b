"""Collectives over numpy arrays on one host: pccl.Communicator against Open MPI through mpi4py.

    python benchmarks/cpu_numpy.py --ranks 2 4 --runs 3

mpirun starts the ranks, which bind themselves to cores; both libraries live in the same processes.
Open MPI yields where there are more ranks than cores. Exits with status 1 when a cell is slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common import report
from common.cells import Cell
from common.launch import require_mpi, run_ranks, run_script, with_mpirun
from common.timing import Budget, Team, measure_case

import pccl
from pccl.bench.cases import Case, make_call

if TYPE_CHECKING:
    from common.launch import Findings, Seat


def worker(seat: Seat) -> Findings:
    from common import mpi_peers

    store = f"file://{seat.folder}/store"
    comm = pccl.Communicator(rank=seat.rank, world_size=seat.ranks, rendezvous=store)
    team = Team(seat.rank, comm.barrier, mpi_peers.slowest)
    cells = []
    for collective in seat.options.collectives:
        for size in seat.options.sizes:
            case = Case.of_bytes(collective, seat.ranks, size)
            x, out = case.buffers()
            calls = {
                "pccl": make_call(comm, case, x, out),
                "mpi": mpi_peers.make_call(case, x, out),
            }
            us = measure_case(calls, case, (x, out), team, Budget.of(seat.options))
            cells.append(Cell(collective, seat.ranks, size, us))
    comm.shutdown()
    return {"cells": cells}


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2, 4], seconds=0.1)
    report.add_cells(parser)
    options = parser.parse_args()
    require_mpi()
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks, with_mpirun))
    report.show(findings["cells"])
    summaries = {"cells": report.show_summary(findings["cells"])}
    report.write("cpu_numpy", options, findings, summaries)
    return report.name_slower(findings["cells"])


if __name__ == "__main__":
    run_script(main, worker)

# SPDX-License-Identifier: Apache-2.0
"""Collectives over numpy arrays on one host: pccl.Communicator against MPIs through mpi4py.

    python benchmarks/cpu_numpy.py --ranks 2 4 --runs 3
    python benchmarks/cpu_numpy.py --mpis openmpi4
    python benchmarks/cpu_numpy.py --tcp --ranks 16 32 --sizes 4K 64K

``--tcp`` is for many ranks, as if each had a host: pccl and the Open MPIs, over TCP alone. Sizes
are bytes a rank then: the buffer of an all_reduce or broadcast, one rank's block of the others.

Each MPI's mpirun starts ranks, which bind themselves to cores; pccl and that MPI live in the same
processes, and take turns there. What a cell shows is the MPI that is fastest in it, next to pccl as
it was in the processes of that one. MPIs that can yield where there are more ranks than cores.
Exits with status 1 when a cell is slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common import mpis, report
from common.cells import Cell
from common.launch import run_script
from common.timing import Budget, Team, measure_case

import pccl
from pccl.bench.cases import Case, make_call

if TYPE_CHECKING:
    import argparse

    from common.launch import Findings, Seat


def worker(seat: Seat) -> Findings:
    from common import mpi_peers

    store = f"file://{seat.folder}/store"
    comm = pccl.Communicator(rank=seat.rank, world_size=seat.ranks, rendezvous=store)
    team = Team(seat.rank, comm.barrier, mpi_peers.slowest)
    cells = []
    for collective in seat.options.collectives:
        for size in seat.options.sizes:
            case = make_case(collective, seat.ranks, size, seat.options.tcp)
            x, out = case.buffers()
            calls = {
                "pccl": make_call(comm, case, x, out),
                "mpi": mpi_peers.make_call(case, x, out),
            }
            us = measure_case(calls, case, (x, out), team, Budget.of(seat.options))
            cells.append(Cell(collective, seat.ranks, size, us))
    comm.shutdown()
    return {"cells": cells}


def make_case(collective: str, ranks: int, size: int, is_a_rank: bool) -> Case:
    if is_a_rank:
        return Case(collective, ranks, max(1, size // 4))
    return Case.of_bytes(collective, ranks, size)


def find_mpis(options: argparse.Namespace) -> list[mpis.Mpi]:
    found = mpis.chosen(options, mpis.OPEN_MPIS if options.tcp else mpis.ALL)
    return [mpi.over_tcp() for mpi in found] if options.tcp else found


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2, 4], seconds=0.1)
    report.add_cells(parser)
    mpis.add_choice(parser)
    parser.add_argument("--tcp", action="store_true", help="over TCP on loopback; bytes a rank")
    options = parser.parse_args()
    if options.tcp and not any(mpi.name in options.mpis for mpi in mpis.OPEN_MPIS):
        parser.error("--tcp is for Open MPIs: give openmpi4 or openmpi5 as --mpis")
    found = find_mpis(options)
    findings = report.repeat(options, lambda ranks: mpis.run_each(options, ranks, found))
    report.show(findings["cells"], "bytes a rank" if options.tcp else "bytes")
    summaries = {}
    for name, cells in findings.items():
        print("fastest in each cell" if name == "cells" else name)
        summaries[name] = report.show_summary(cells)
    report.write("cpu_numpy", options, findings, summaries)
    return report.name_slower(findings["cells"])


if __name__ == "__main__":
    run_script(main, worker)

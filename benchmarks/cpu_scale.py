# SPDX-License-Identifier: Apache-2.0
"""Many ranks on few cores: pccl and Gloo through torch, Open MPI through mpi4py, in one run.

    python benchmarks/cpu_scale.py --ranks 8 16 32

Sizes are bytes a rank: the buffer of an all_reduce, one rank's block of the others. Open MPI yields
while it waits where ranks share cores; ``--tcp`` keeps all three to sockets, as between hosts. Also
times init_process_group with the first all_reduce, on a store that is there already, and checks the
results of pccl over more ranks than it times. ``--collectives`` with none times starts alone.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from common import mpis, report, torch_peers
from common.cells import Cell
from common.launch import run_ranks, run_script
from common.timing import Budget, measure_case

from pccl.bench import Job, bytes_of, run
from pccl.bench.cases import COLLECTIVES, Case

if TYPE_CHECKING:
    from common.launch import Findings, Seat

SIZES = [64 * 4**power for power in range(5)]
TIMED = ["all_gather", "reduce_scatter", "all_reduce"]


def open_store(seat: Seat) -> dist.Store:
    """Return this rank's connection to a store for one start.

    Connecting is not timed: torch asks the name service about the peer's address, and where many
    processes ask at once an answer gets lost, and is waited for 5 seconds.
    """
    from common import mpi_peers

    world = mpi_peers.WORLD
    if seat.rank == 0:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        world.bcast(server.port)
        return server
    return dist.TCPStore("127.0.0.1", world.bcast(None), is_master=False)


def time_start(backend: str, seat: Seat) -> float:
    """Return the seconds of init_process_group and one all_reduce, on the slowest rank."""
    from common import mpi_peers

    store = open_store(seat)
    mpi_peers.WORLD.Barrier()
    start = time.perf_counter()
    dist.init_process_group(backend, store=store, rank=seat.rank, world_size=seat.ranks)
    dist.all_reduce(torch.ones(1))
    (seconds,) = mpi_peers.slowest([time.perf_counter() - start])
    dist.destroy_process_group()
    return seconds


def measure_starts(seat: Seat) -> Cell:
    """Let the backends start in turns; the first of each is a warm-up that does not count."""
    found: dict[str, list[float]] = {"pccl": [], "gloo": []}
    for _ in range(1 + seat.options.starts):
        for backend, times in found.items():
            times.append(time_start(backend, seat))
    us = {backend: statistics.median(times[1:]) * 1e6 for backend, times in found.items()}
    return Cell("init and first all_reduce", seat.ranks, 4, us)


def worker(seat: Seat) -> Findings:
    from common import mpi_peers

    torch.set_num_threads(1)
    starts = [measure_starts(seat)] if seat.options.starts > 0 else []
    groups = torch_peers.open_groups(seat)
    team = torch_peers.make_team(groups)
    cells = []
    for collective in seat.options.collectives:
        for size in seat.options.sizes:
            case = Case(collective, seat.ranks, size // 4)
            x, out = torch_peers.make_buffers(case)
            calls = {name: torch_peers.make_call(groups[name], case, x, out) for name in groups}
            arrays = x.numpy(), out.numpy()
            calls["mpi"] = mpi_peers.make_call(case, *arrays)
            us = measure_case(calls, case, arrays, team, Budget.of(seat.options))
            cells.append(Cell(collective, seat.ranks, size, us))
    dist.destroy_process_group()
    return {"cells": cells, "starts": starts}


def count_wrong(ranks: int) -> int:
    """Return how many elements pccl gets wrong over ``ranks`` ranks, in all collectives."""
    rows = list(run(Job(sizes=(64 * ranks, 1024 * ranks), ranks=ranks)))
    wrong = sum(row.wrong for row in rows)
    print(f"{ranks} ranks, {len(COLLECTIVES)} collectives at two sizes: {wrong} wrong elements")
    return wrong


def show_starts(cells: list[Cell]) -> None:
    for cell in cells:
        times = ", ".join(f"{name} {us / 1000:.1f} ms" for name, us in cell.us.items())
        print(f"{cell.ranks} ranks, {cell.collective}: {times}")


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[8, 16, 32], seconds=0.5)
    parser.set_defaults(rounds=2, least=3)
    parser.add_argument("--collectives", nargs="*", default=TIMED, choices=COLLECTIVES)
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=SIZES, help="bytes a rank")
    parser.add_argument("--tcp", action="store_true", help="over TCP on loopback")
    parser.add_argument("--starts", type=int, default=3, help="of each backend, 0 for none")
    parser.add_argument("--check-ranks", type=int, default=64, help="0 for no check")
    options = parser.parse_args()
    mpi = mpis.require(mpis.OPEN_MPIS)[0]
    launch = (mpi.over_tcp() if options.tcp else mpi).launch
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks, launch))
    report.show(findings["cells"], "bytes a rank")
    show_starts(findings["starts"])
    summaries = {"cells": report.show_summary(findings["cells"])}
    wrong = count_wrong(options.check_ranks) if options.check_ranks else 0
    summaries["check"] = {"ranks": options.check_ranks, "wrong": wrong}
    report.write("cpu_scale", options, findings, summaries)
    return 1 if wrong else 0


if __name__ == "__main__":
    run_script(main, worker)

# SPDX-License-Identifier: Apache-2.0
"""What recording a timeline costs a collective over links of one host.

    python benchmarks/timeline_cost.py --ranks 2 --algorithms ring pat

Every rank stays on a core of its own, so that the scheduler does not decide what is compared. Turns
with and without recording alternate in the same processes; a turn's figure is the least of the
slowest rank's times, and a row's the lower quartile of its turns. ``pccl capsule bench --timeline``
says the same of a capsule, wherever its ranks run. Prints the share by which calls become longer;
exits with status 1 where a row is above the goal.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pccl.lang as pl
from pccl._internal.local_ranks import run_ranks
from pccl.bench import bytes_of
from pccl.bench.capsules import call_of
from pccl.bench.cases import Case, time_calls
from pccl.bench.collectives import slowest

if TYPE_CHECKING:
    from collections.abc import Callable

GOAL = 0.05
TIMEOUT_S = 120.0
TURNS = 60  # of each kind
CALLS = 20  # of a turn
WARM_UP_CALLS = 20
ROOM = 1 << 14  # steps


@dataclass(frozen=True)
class Row:
    """Microseconds of a call, without and with recording."""

    algorithm: str
    ranks: int
    size: int
    us: float
    recorded_us: float

    @property
    def cost(self) -> float:
        return self.recorded_us / self.us - 1


def main() -> int:
    options = parser().parse_args()
    if options.ranks > len(os.sched_getaffinity(0)):
        sys.exit(f"{options.ranks} ranks need as many cores: {len(os.sched_getaffinity(0))} here")
    os.environ["PCCL_TRANSPORTS"] = options.transport
    rows: list[Row] = []
    print(f"{'':<24} {'us':>9} {'recorded':>9} {'cost':>7}")
    for algorithm in options.algorithms:
        worker = functools.partial(be_rank, algorithm, options.sizes, options.ranks)
        for row in run_ranks(worker, options.ranks):
            what = f"{algorithm} {options.ranks} {row.size}"
            print(
                f"{what:<24} {row.us:>9.2f} {row.recorded_us:>9.2f} {row.cost:>+7.1%}", flush=True
            )
            rows.append(row)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0 if all(row.cost <= GOAL for row in rows) else 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--ranks", type=int, default=2)
    made.add_argument("--algorithms", nargs="+", default=["ring", "pat"])
    made.add_argument(
        "--sizes", type=bytes_of, nargs="+", default=[1 << shift for shift in range(10, 22, 2)]
    )
    made.add_argument("--transport", default="shm,tcp", help="as PCCL_TRANSPORTS has it")
    made.add_argument("--json", type=Path)
    return made


def be_rank(
    algorithm: str,
    sizes: list[int],
    ranks: int,
    rank: int,
    rendezvous: str,
    send: Callable[[object], None],
) -> None:
    from pccl._core import Communicator

    core = sorted(os.sched_getaffinity(0))[rank]
    comm = Communicator(rank=rank, world_size=ranks, rendezvous=rendezvous, timeout=TIMEOUT_S)
    os.sched_setaffinity(0, {core})
    operator = comm.load(pl.from_generator(algorithm, "all_reduce", ranks), "by name")
    for size in sizes:
        case = Case.of_bytes("all_reduce", ranks, size)
        call = call_of(operator, case, *case.buffers())
        time_calls(call, comm.barrier, WARM_UP_CALLS)
        times: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(2 * TURNS):
            records = bool(turn % 2)
            comm.record_timeline(ROOM if records else 0)
            times[records].append(min(slowest(comm, time_calls(call, comm.barrier, CALLS))))
        us, recorded_us = (statistics.quantiles(times[which])[0] * 1e6 for which in (False, True))
        if rank == 0:
            send(Row(algorithm, ranks, size, us, recorded_us))
    comm.barrier()


if __name__ == "__main__":
    sys.exit(main())

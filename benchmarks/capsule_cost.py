# SPDX-License-Identifier: Apache-2.0
"""What a built-in program costs more, or less, as a capsule than as the built-in.

    python benchmarks/capsule_cost.py --ranks 2 --algorithms ring pat --json cost.json

Both run over the same links of the same processes and on the same buffers, in turns that alternate,
and the built-in once more beside them: by so much figures of one and the same program differ. A
call takes as long as its slowest rank, and a row's figures are the least of all calls: that is what
other programs on the machine disturb least. Where there are as many cores as ranks, each rank stays
on one. Prints the share by which calls become longer; exits with status 1 where that is above the
goal, against both of the built-in's figures.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import schedule
from pccl._internal.local_ranks import run_ranks
from pccl.bench import bytes_of
from pccl.bench.cases import Case, make_call_by, time_calls
from pccl.bench.collectives import slowest
from pccl.capsule import Capsule

if TYPE_CHECKING:
    from collections.abc import Callable

    from pccl._core import Communicator
    from pccl.bench.cases import Call

GOAL = 0.03
TIMEOUT_S = 120.0
WARM_UP_CALLS = 20


@dataclass(frozen=True)
class Row:
    """Microseconds of a call, of the built-in twice."""

    algorithm: str
    collective: str
    ranks: int
    size: int
    built_in_us: float
    capsule_us: float
    again_us: float

    @property
    def cost(self) -> float:
        return self.capsule_us / self.built_in_us - 1

    @property
    def is_above_goal(self) -> bool:
        return self.capsule_us > (1 + GOAL) * max(self.built_in_us, self.again_us)

    def line(self) -> str:
        what = f"{self.algorithm} {self.collective} {self.ranks} {self.size}"
        again = self.again_us / self.built_in_us - 1
        micros = (self.built_in_us, self.capsule_us)
        figures = " ".join(f"{each:>10.2f}" for each in micros)
        return f"{what:<36} {figures} {self.cost:>+7.1%} {again:>+9.1%}"


@dataclass(frozen=True)
class Plan:
    """What all ranks of a process group measure."""

    collective: str
    algorithms: list[str]
    sizes: list[int]
    ranks: int
    turns: int
    calls: int


def main() -> int:
    options = parser().parse_args()
    os.environ["PCCL_TRANSPORTS"] = options.transport
    rows: list[Row] = []
    print(f"{'':<36} {'built-in':>10} {'capsule':>10} {'cost':>7} {'built-in':>9}")
    for ranks in options.ranks:
        plan = Plan(
            options.collective,
            options.algorithms,
            options.sizes,
            ranks,
            options.turns,
            options.calls,
        )
        for row in run_ranks(functools.partial(be_rank, plan), ranks):
            print(row.line(), flush=True)
            rows.append(row)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 1 if any(row.is_above_goal for row in rows) else 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    made.add_argument("--collective", default="all_reduce")
    made.add_argument("--algorithms", nargs="+", default=["ring", "pat"])
    made.add_argument(
        "--sizes", type=bytes_of, nargs="+", default=[1 << shift for shift in range(10, 25, 2)]
    )
    made.add_argument("--turns", type=int, default=40, help="of each kind")
    made.add_argument("--calls", type=int, default=10, help="of a turn")
    made.add_argument("--transport", default="shm,tcp", help="as PCCL_TRANSPORTS has it")
    made.add_argument("--json", type=Path)
    return made


def be_rank(plan: Plan, rank: int, rendezvous: str, send: Callable[[object], None]) -> None:
    from pccl._core import Communicator

    comm = Communicator(rank=rank, world_size=plan.ranks, rendezvous=rendezvous, timeout=TIMEOUT_S)
    cores = sorted(os.sched_getaffinity(0))
    if plan.ranks <= len(cores):
        os.sched_setaffinity(0, {cores[rank]})
    capsule_for = functools.cache(functools.partial(loaded, comm, plan))
    for algorithm in plan.algorithms:
        for size in plan.sizes:
            case = Case.of_bytes(plan.collective, plan.ranks, size)
            capsule = capsule_for(algorithm, aggregation_of(comm, algorithm, case, size))
            x, out = case.buffers()
            names = (algorithm, capsule, algorithm)
            calls = [make_call_by(name, comm, case, x, out) for name in names]
            micros = compared(comm, plan, calls)
            if rank == 0:
                send(Row(algorithm, plan.collective, plan.ranks, size, *micros))
    comm.barrier()


def aggregation_of(comm: Communicator, algorithm: str, case: Case, size: int) -> int:
    """Return how many blocks the built-in has in a message at this size, where it has a choice."""
    ways = comm.explain(case.collective, size)
    return next(
        way.aggregation for way in ways if (way.algorithm, way.over) == (algorithm, "links")
    )


def loaded(comm: Communicator, plan: Plan, algorithm: str, aggregation: int) -> str:
    """Load the program as a capsule, and return its name."""
    made = schedule.generate(algorithm, plan.collective, plan.ranks, aggregation=aggregation)
    name = f"{algorithm}_capsule_{aggregation}"
    comm.load(Capsule.of(made.renamed(name)), "by name")
    return name


def compared(comm: Communicator, plan: Plan, calls: list[Call]) -> list[float]:
    """Return microseconds of each, which run turn and turn about."""
    for call in calls:
        time_calls(call, comm.barrier, WARM_UP_CALLS)
    times: list[list[float]] = [[] for _ in calls]
    forward = list(range(len(calls)))
    for turn in range(plan.turns):
        # Each finds caches as another has left them, which is not always the same one.
        for which in forward if turn % 2 == 0 else reversed(forward):
            calls_s = time_calls(calls[which], comm.barrier, plan.calls)
            times[which].append(min(slowest(comm, calls_s)))
    return [min(each) * 1e6 for each in times]


if __name__ == "__main__":
    sys.exit(main())

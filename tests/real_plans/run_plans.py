# SPDX-License-Identifier: Apache-2.0
"""Import, prove and run the execution plans that the sources of MSCCL++ write; print a table.

    python tests/real_plans/run_plans.py FOLDER [--most-ranks 16] [--kept PLANS]

FOLDER is one with the sources of MSCCL++. README.md says what is generated.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from plan_sources import Generated, collective_of, generate

import pccl
from support.numpy_collectives import data_of, executed, executed_the_other_way, expected_of
from support.thread_ranks import run_threads

COLLECTIVES = ("allgather", "allreduce", "reducescatter", "alltoall")
# Elements of a block: fewer than chunks, no multiple of them, and some of each.
COUNTS = (1, 5, 97, 1000, 4096)
# More ranks run as processes: the links of a plan of 16 can take more than 20,000 descriptors, and
# a process may have no more than `ulimit -n`.
MOST_THREADS = 8
_PLACE = re.compile(r"^[^:]+\.json:\d+: ")


@dataclass
class Outcome:
    """What became of a plan of a collective."""

    plan: Generated
    collective: str
    capsule: pccl.Capsule | None = None
    error: pccl.Error | None = None
    is_right: bool | None = None  # None: not run
    seconds: float = 0.0

    @property
    def needs_multicast(self) -> bool:
        return "needs a switch channel (multicast)" in str(self.error)

    @property
    def is_refused_well(self) -> bool:
        """Whether it was not called wrong, and its place was named."""
        return isinstance(self.error, pccl.UnsupportedError) and bool(
            _PLACE.match(str(self.error).replace(str(self.plan.file), "plan.json"))
        )

    def __str__(self) -> str:
        if self.error is not None:
            result = f"{type(self.error).__name__}: {self.error}"
        else:
            runs = {None: "proven, not run", True: "right", False: "WRONG"}[self.is_right]
            result = f"{runs} ({self.seconds:.1f} s)"
        return f"{self.plan.source.origin:15} {self.plan.source.name:40} {result}"


def imported(plan: Generated) -> Outcome:
    """Import the plan, and prove it."""
    assert plan.file is not None
    outcome = Outcome(plan, collective_of(plan.file))
    try:
        outcome.capsule = pccl.Capsule.from_mscclpp(plan.file, name="mine")
    except pccl.Error as error:
        outcome.error = error
    return outcome


def is_right(comm: pccl.Communicator, capsule: pccl.Capsule) -> bool:
    """Run it as one rank for each count, and compare with numpy."""
    ranks = comm.world_size
    operator = comm.load(capsule, "by name")
    for count in COUNTS:
        inputs = np.stack([data_of(rank, ranks * count) for rank in range(ranks)])
        expected = expected_of(operator.collective, inputs, comm.rank, 0)
        mine = inputs[comm.rank]
        found = executed(operator, mine.copy(), ranks)
        other = executed_the_other_way(operator, mine.copy(), ranks, comm.rank)
        if not (np.array_equal(found, expected) and np.array_equal(other, expected)):
            return False
    return True


def run(outcome: Outcome, folder: Path) -> None:
    """Run it on CPU ranks, in one memory and between two, and compare with numpy."""
    capsule = outcome.capsule
    assert capsule is not None
    ranks = capsule.schedule.ranks
    begin = time.monotonic()
    if ranks > MOST_THREADS:
        outcome.is_right = all(pccl.run(is_right, capsule, ranks=ranks, timeout=300.0))
    else:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            outcome.is_right = all(
                run_threads(Path(own), ranks, lambda comm: is_right(comm, capsule), timeout_s=300.0)
            )
    outcome.seconds = time.monotonic() - begin


def outcomes(plans: list[Generated], folder: Path, most_ranks: int) -> list[Outcome]:
    """Import all plans of collectives, and run those of at most ``most_ranks``."""
    found = []
    for plan in plans:
        if plan.file is None or collective_of(plan.file) not in COLLECTIVES:
            continue
        outcome = imported(plan)
        if outcome.capsule is not None and outcome.capsule.schedule.ranks <= most_ranks:
            run(outcome, folder)
        found.append(outcome)
    return found


def table(found: list[Outcome]) -> str:
    """Write a line for each collective, and one for all."""
    columns = ["plans", "proven", "right", "wrong", "not run", "multicast", "refused else"]

    def figures(of: list[Outcome]) -> list[int]:
        return [
            len(of),
            sum(each.capsule is not None for each in of),
            sum(each.is_right is True for each in of),
            sum(each.is_right is False for each in of),
            sum(each.capsule is not None and each.is_right is None for each in of),
            sum(each.needs_multicast for each in of),
            sum(each.error is not None and not each.needs_multicast for each in of),
        ]

    lines = [f"{'':15}" + "".join(f"{column:>14}" for column in columns)]
    for name in COLLECTIVES:
        of = [each for each in found if each.collective == name]
        lines.append(f"{name:15}" + "".join(f"{figure:14}" for figure in figures(of)))
    lines.append(f"{'all':15}" + "".join(f"{figure:14}" for figure in figures(found)))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with the sources of MSCCL++")
    parser.add_argument("--most-ranks", type=int, default=32, help="of plans that are run")
    parser.add_argument("--kept", type=Path, help="folder for the plans; else a temporary one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.kept or Path(temporary)
        folder.mkdir(exist_ok=True)
        plans = generate(chosen.folder, folder)
        found = outcomes(plans, Path(temporary), chosen.most_ranks)
        rest = Counter(collective_of(each.file) for each in plans if each.file)
    for each in found:
        print(each)
    for plan in plans:
        if plan.file is None:
            print(f"{plan.source.origin:15} {plan.source.name:40} not written: {plan.error}")
    others = {name: count for name, count in rest.items() if name not in COLLECTIVES}
    print(f"\n{table(found)}\n\nplans of no collective: {others}")
    return int(any(each.is_right is False for each in found))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""HTML of schedules for notebooks: the steps of each rank in each round."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from pccl.results import table
from pccl.results.schedule_steps import rounds_of

if TYPE_CHECKING:
    from pccl._core import Schedule

__all__ = ["html_of"]

MOST_RANKS = 16
MOST_ROUNDS = 32


def html_of(schedule: Schedule) -> str:
    """Return a table with a row for each rank and a column for each round."""
    rounds = rounds_of(schedule.steps)
    last = max(rounds.values(), default=0)
    cells: dict[tuple[int, int], list[str]] = collections.defaultdict(list)
    for step, time in rounds.items():
        cells[step.rank, time].append(step.text)
    rows: list[table.Fields] = [
        {"rank": rank}
        | {
            f"round {time}": "\n".join(cells[rank, time])
            for time in range(min(last, MOST_ROUNDS) + 1)
        }
        for rank in range(min(schedule.ranks, MOST_RANKS))
    ]
    return table.html_table(rows, caption="\n".join([repr(schedule), *_left_out(schedule, last)]))


def _left_out(schedule: Schedule, last: int) -> list[str]:
    more = []
    if schedule.ranks > MOST_RANKS:
        more.append(f"the first {MOST_RANKS} of its {schedule.ranks} ranks")
    if last > MOST_ROUNDS:
        more.append(f"up to round {MOST_ROUNDS} of {last}")
    return [f"here {', '.join(more)}; print() shows all"] if more else []

# SPDX-License-Identifier: Apache-2.0
"""Plots of errors in a program: the steps in conflict, with the neighbouring steps."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl._core import Schedule
    from pccl.lang.lines import Line, Place
    from pccl.results.schedule_steps import Step

__all__ = ["draw_conflict"]

AROUND = 2
USUAL = "#dddddd"
CONFLICT = "#ee6677"
MOST_LETTERS = 60


def draw_conflict(
    schedule: Schedule,
    places: Sequence[Place],
    lines: Mapping[Place, Sequence[Line]],
    what: str,
) -> matplotlib.figure.Figure:
    """Draw a column for each lane with a step in conflict: that step and its neighbours.

    Steps in conflict have a colour and show their line of Python; an arrow joins the first two.
    """
    lanes = sorted({place[:2] for place in places})
    spots = _spots_of(schedule, places, lanes)
    rows = 1 + max(row for _, row in spots.values())
    figure = new_figure(0.4 + 5.0 * len(lanes), 1.2 + 0.55 * rows)
    axes = figure.add_subplot()
    for column, (rank, lane) in enumerate(lanes):
        axes.text(column, -0.8, f"rank {rank}, lane {lane}", ha="center", weight="bold", size=9)
    for step, spot in spots.items():
        place = (step.rank, step.lane, step.step)
        is_marked = place in places
        label = _label(step, lines.get(place, ()) if is_marked else ())
        _draw_step(axes, spot, label, CONFLICT if is_marked else USUAL)
    by_place = {(step.rank, step.lane, step.step): spot for step, spot in spots.items()}
    _join(axes, [by_place[place] for place in places if place in by_place][:2])
    axes.set_xlim(-0.5, len(lanes) - 0.5)
    axes.set_ylim(rows - 0.4, -1.0)
    axes.axis("off")
    axes.set_title("\n".join(textwrap.wrap(what, 70 * len(lanes))), fontsize=8, loc="left")
    return figure


def _spots_of(
    schedule: Schedule, places: Sequence[Place], lanes: Sequence[tuple[int, int]]
) -> dict[Step, tuple[int, int]]:
    """Return the column and row of each drawn step."""
    spots = {}
    for step in schedule.steps:
        lane = (step.rank, step.lane)
        if lane not in lanes:
            continue
        marked = min(place[2] for place in places if place[:2] == lane)
        if abs(step.step - marked) <= AROUND:
            spots[step] = (lanes.index(lane), step.step - max(0, marked - AROUND))
    return spots


def _label(step: Step, lines: Sequence[Line]) -> str:
    text = [f"{step.step}: {_cut(step.text)}", *(_cut(str(line)) for line in lines)]
    return "\n".join(text)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."


def _draw_step(axes: matplotlib.axes.Axes, spot: tuple[int, int], label: str, colour: str) -> None:
    axes.text(
        *spot,
        label,
        ha="center",
        va="center",
        fontsize=7,
        family="monospace",
        bbox={"boxstyle": "round", "facecolor": colour, "edgecolor": "black"},
    )


def _join(axes: matplotlib.axes.Axes, spots: list[tuple[int, int]]) -> None:
    if len(spots) < 2:
        return
    axes.annotate(
        "",
        spots[0],
        spots[1],
        arrowprops={
            "arrowstyle": "<->",
            "color": CONFLICT,
            "linewidth": 2,
            "shrinkA": 14,
            "shrinkB": 14,
            "connectionstyle": "arc3,rad=0.25",
        },
    )

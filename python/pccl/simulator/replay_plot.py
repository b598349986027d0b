# SPDX-License-Identifier: Apache-2.0
"""Plots of replays, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.topology.figure import Bar, draw_bars, new_figure, number_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl.simulator.replay_steps import StepTime

__all__ = ["draw_replay"]

LEAST_INCHES, MOST_INCHES = 2.0, 20.0
MOST_STEPS = 20_000
USUAL = "#4477aa"
CRITICAL = "#ee6677"


def draw_replay(
    title: str, steps: Sequence[StepTime], critical_path: Sequence[StepTime], *, one_for_all: bool
) -> matplotlib.figure.Figure:
    """Draw a bar for each step until its message has left, and a line to its arrival.

    The rows are ranks from top to bottom, or the lanes of one rank that represents all ranks. At
    most the first 20,000 steps are drawn.
    """
    drawn = steps[:MOST_STEPS]
    rows = 1 + max((_row(step, one_for_all) for step in drawn), default=0)
    figure = new_figure(9.0, min(max(1.2 + 0.35 * rows, LEAST_INCHES), MOST_INCHES))
    axes = figure.add_subplot()
    critical = {_key(step, one_for_all) for step in critical_path}
    colours = [CRITICAL if _key(step, one_for_all) in critical else USUAL for step in drawn]
    bars = [
        Bar(_row(step, one_for_all), step.begin * 1e6, step.done * 1e6, colour)
        for step, colour in zip(drawn, colours, strict=True)
    ]
    draw_bars(axes, bars, height=0.5)
    if not one_for_all:
        _draw_messages(axes, drawn, colours)
    axes.set_ylim(rows - 0.4, -0.6)
    number_whole(axes.yaxis, rows, most=64)
    axes.set_xlabel("microseconds")
    axes.set_ylabel("lane of every rank" if one_for_all else "rank")
    axes.set_title(f"{title}; the critical path in red", fontsize=9, loc="left")
    return figure


def _row(step: StepTime, one_for_all: bool) -> int:
    return step.lane if one_for_all else step.rank


def _key(step: StepTime, one_for_all: bool) -> tuple[int, int, int]:
    return _row(step, one_for_all), step.lane, step.index


def _draw_messages(
    axes: matplotlib.axes.Axes, steps: Sequence[StepTime], colours: Sequence[str]
) -> None:
    from matplotlib.collections import LineCollection

    lines = [
        ([(step.done * 1e6, step.rank), (step.arrival * 1e6, step.receiver)], colour)
        for step, colour in zip(steps, colours, strict=True)
        if step.receiver >= 0
    ]
    axes.add_collection(
        LineCollection(
            [line for line, _ in lines],
            colors=[colour for _, colour in lines],
            linewidths=0.7,
            alpha=0.7,
        )
    )
    axes.autoscale_view()

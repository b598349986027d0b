# SPDX-License-Identifier: Apache-2.0
"""Plots of timelines, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.simulator.replay_plot import (
    CRITICAL,
    MOST_INCHES,
    MOST_STEPS,
    USUAL,
)
from pccl.topology.figure import Bar, draw_bars, new_figure, number_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl.simulator.replay_steps import StepTime
    from pccl.timeline.steps import Hop, MeasuredStep

__all__ = ["draw_timeline"]

WAITING = "#bbbbbb"
SIMULATED = "#ccbb44"
# Each rank has two rows of bars: measured, and simulated below.
HEIGHT = 0.36


def draw_timeline(
    title: str,
    measured: Sequence[MeasuredStep],
    simulated: Sequence[StepTime],
    slowest: Hop | None,
) -> matplotlib.figure.Figure:
    """Draw two rows of bars for each rank: measured steps, and simulated steps.

    Grey bars represent waiting. At most the first 20,000 steps of each kind are drawn.
    """
    drawn = {step.rank for step in measured} | {step.rank for step in simulated}
    ranks = 1 + max(drawn, default=0)
    figure = new_figure(9.0, min(1.4 + 0.6 * ranks, MOST_INCHES))
    axes = figure.add_subplot()
    bars = []
    for step in measured[:MOST_STEPS]:
        bars.append(_bar(_upper(step.rank), (step.begin, step.moved), WAITING))
        bars.append(_bar(_upper(step.rank), (step.moved, step.end), USUAL))
    bars += [
        _bar(played.rank + HEIGHT / 2, (played.begin, played.done), SIMULATED)
        for played in simulated[:MOST_STEPS]
    ]
    draw_bars(axes, bars, HEIGHT)
    if slowest:
        _mark(axes, slowest)
    axes.set_ylim(ranks - 0.4, -0.6)
    number_whole(axes.yaxis, ranks, most=64)
    axes.set_ylabel("rank")
    axes.set_xlabel("microseconds")
    axes.set_title(title, fontsize=9, loc="left")
    _add_legend(axes, has_hop=slowest is not None)
    return figure


def _add_legend(axes: matplotlib.axes.Axes, *, has_hop: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colours = {"waiting": WAITING, "moving": USUAL, "simulated": SIMULATED}
    handles: list[Patch | Line2D] = [
        Patch(color=colour, alpha=0.7, label=label) for label, colour in colours.items()
    ]
    if has_hop:
        handles.append(Line2D([], [], color=CRITICAL, marker="o", label="slowest message"))
    axes.legend(
        handles=handles,
        fontsize=7,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )


def _upper(rank: int) -> float:
    return rank - HEIGHT / 2


def _mark(axes: matplotlib.axes.Axes, hop: Hop) -> None:
    times = [hop.begin * 1e6, hop.received.end * 1e6]
    rows = [_upper(hop.sent.rank), _upper(hop.received.rank)]
    axes.plot(times, rows, color=CRITICAL, linewidth=1.5, marker="o", markersize=3)


def _bar(row: float, between: tuple[float, float], colour: str) -> Bar:
    begin, end = between
    return Bar(row, begin * 1e6, end * 1e6, colour)

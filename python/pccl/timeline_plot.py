"""Pictures of timelines, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.replay_plot import CRITICAL, MOST_INCHES, MOST_STEPS, USUAL
from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl.replay_steps import StepTime
    from pccl.timeline_steps import Hop, MeasuredStep

__all__ = ["draw_timeline"]

WAITING = "#bbbbbb"
SIMULATED = "#ccbb44"
# A rank's bars lie in two rows: measured, and simulated below.
HEIGHT = 0.36


def draw_timeline(
    title: str,
    measured: Sequence[MeasuredStep],
    simulated: Sequence[StepTime],
    slowest: Hop | None,
) -> matplotlib.figure.Figure:
    """Draw two rows of bars for each rank: what was measured, and what was simulated.

    Grey is waiting. Of more than 20,000 steps the first ones are drawn.
    """
    drawn = {step.rank for step in measured} | {step.rank for step in simulated}
    ranks = 1 + max(drawn, default=0)
    figure = new_figure(9.0, min(1.4 + 0.6 * ranks, MOST_INCHES))
    axes = figure.add_subplot()
    for step in measured[:MOST_STEPS]:
        _bar(axes, _upper(step.rank), (step.begin, step.moved), WAITING)
        _bar(axes, _upper(step.rank), (step.moved, step.end), USUAL)
    for played in simulated[:MOST_STEPS]:
        _bar(axes, played.rank + HEIGHT / 2, (played.begin, played.done), SIMULATED)
    if slowest:
        _mark(axes, slowest)
    axes.set_ylim(ranks - 0.4, -0.6)
    axes.set_yticks(range(ranks))
    axes.set_ylabel("rank")
    axes.set_xlabel("microseconds")
    axes.set_title(title, fontsize=9, loc="left")
    return figure


def _upper(rank: int) -> float:
    return rank - HEIGHT / 2


def _mark(axes: matplotlib.axes.Axes, hop: Hop) -> None:
    times = [hop.begin * 1e6, hop.received.end * 1e6]
    rows = [_upper(hop.sent.rank), _upper(hop.received.rank)]
    axes.plot(times, rows, color=CRITICAL, linewidth=1.5, marker="o", markersize=3)


def _bar(axes: matplotlib.axes.Axes, row: float, between: tuple[float, float], colour: str) -> None:
    begin, end = between
    axes.barh(
        row,
        (end - begin) * 1e6,
        left=begin * 1e6,
        height=HEIGHT,
        color=colour,
        alpha=0.7,
        edgecolor="white",
        linewidth=0.3,
    )

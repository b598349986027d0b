"""Pictures of replays, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl.replay_steps import StepTime

__all__ = ["draw_replay"]

MOST_INCHES = 20.0
MOST_STEPS = 20_000
USUAL = "#4477aa"
CRITICAL = "#ee6677"


def draw_replay(
    title: str, steps: Sequence[StepTime], critical_path: Sequence[StepTime], *, one_for_all: bool
) -> matplotlib.figure.Figure:
    """Draw a bar for each step while its message leaves, and a line to where it arrives.

    Ranks are from top to bottom; of one rank that stands for all, its lanes are. Of more than
    20,000 steps the first ones are drawn.
    """
    drawn = steps[:MOST_STEPS]
    rows = 1 + max((_row(step, one_for_all) for step in drawn), default=0)
    figure = new_figure(9.0, min(1.2 + 0.35 * rows, MOST_INCHES))
    axes = figure.add_subplot()
    critical = {_key(step, one_for_all) for step in critical_path}
    for step in drawn:
        colour = CRITICAL if _key(step, one_for_all) in critical else USUAL
        _draw(axes, step, colour, one_for_all)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xlabel("microseconds")
    axes.set_ylabel("lane of every rank" if one_for_all else "rank")
    axes.set_title(f"{title}; the critical path in red", fontsize=9, loc="left")
    return figure


def _row(step: StepTime, one_for_all: bool) -> int:
    return step.lane if one_for_all else step.rank


def _key(step: StepTime, one_for_all: bool) -> tuple[int, int, int]:
    return _row(step, one_for_all), step.lane, step.index


def _draw(axes: matplotlib.axes.Axes, step: StepTime, colour: str, one_for_all: bool) -> None:
    row = _row(step, one_for_all)
    begin, end = step.begin * 1e6, step.done * 1e6
    axes.barh(row, end - begin, left=begin, height=0.5, color=colour, alpha=0.7)
    if step.receiver >= 0 and not one_for_all:
        axes.plot(
            [end, step.arrival * 1e6], [row, step.receiver], color=colour, linewidth=0.7, alpha=0.7
        )

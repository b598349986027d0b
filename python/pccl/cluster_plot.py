"""Pictures of plans, with matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from pccl.cluster import Plan

__all__ = ["draw_plan"]

KEPT = ("#bbbbbb", "-", "kept")
MOVED = ("#ccbb44", "-", "dark, then back")
LOST = ("#ee6677", ":", "lost")
GAINED = ("#228833", "-", "gained")


def draw_plan(plan: Plan) -> matplotlib.figure.Figure:
    """Draw ranks on a circle, and an arrow for each link of either phase."""
    figure = new_figure(5, 5.4)
    axes = figure.add_subplot()
    axes.set_title(f"{plan.source or 'nothing'} -> {plan.target}")
    axes.set_aspect("equal")
    axes.set_axis_off()
    kinds = [(plan.kept, *KEPT), (plan.moved, *MOVED), (plan.lost, *LOST), (plan.gained, *GAINED)]
    links = [link for each, *_ in kinds for link in each]
    ranks = 1 + max((rank for link in links for rank in link), default=0)
    places = [_place(rank, ranks) for rank in range(ranks)]
    for each, colour, style, label in kinds:
        for source, target in each:
            _draw_link(axes, (places[source], places[target]), colour, style)
        if each:
            axes.plot([], [], color=colour, linestyle=style, label=label)
    for rank, (x, y) in enumerate(places):
        axes.text(x, y, str(rank), ha="center", va="center", bbox={"boxstyle": "circle", "fc": "w"})
    if links:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, frameon=False)
    return figure


def _place(rank: int, ranks: int) -> tuple[float, float]:
    angle = math.pi / 2 - 2 * math.pi * rank / ranks
    return math.cos(angle), math.sin(angle)


def _draw_link(
    axes: matplotlib.axes.Axes,
    ends: tuple[tuple[float, float], tuple[float, float]],
    colour: str,
    style: str,
) -> None:
    axes.annotate(
        "",
        ends[1],
        ends[0],
        arrowprops={
            "arrowstyle": "->",
            "color": colour,
            "linestyle": style,
            "shrinkA": 14,
            "shrinkB": 14,
            "connectionstyle": "arc3,rad=0.08",  # so that both ways show
        },
    )

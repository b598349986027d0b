# SPDX-License-Identifier: Apache-2.0
"""Pictures of plans, with matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import matplotlib.axes
    import matplotlib.figure

__all__ = ["draw_links"]

FRAME = 1.3  # half the width of the frame; ranks are on a circle of radius 1

# Colour, line style and legend of each kind of link.
KINDS = {
    "kept": ("#bbbbbb", "-", "kept"),
    "moved": ("#ccbb44", "-", "dark, then back"),
    "lost": ("#ee6677", ":", "lost"),
    "gained": ("#228833", "-", "gained"),
}


def draw_links(
    title: str, links_of: Mapping[str, Sequence[tuple[int, int]]]
) -> matplotlib.figure.Figure:
    """Draw ranks on a circle, and an arrow for each link; the kinds are those of ``KINDS``."""
    figure = new_figure(5, 5.6, is_placed=True)
    axes = figure.add_axes((0.02, 0.09, 0.96, 0.84))
    axes.set_title(title)
    # matplotlib ignores arrows and texts in its automatic limits.
    axes.set_xlim(-FRAME, FRAME)
    axes.set_ylim(-FRAME, FRAME)
    axes.set_aspect("equal")
    axes.set_axis_off()
    links = [link for each in links_of.values() for link in each]
    ranks = 1 + max((rank for link in links for rank in link), default=0)
    places = [_place(rank, ranks) for rank in range(ranks)]
    for kind, each in links_of.items():
        colour, style, label = KINDS[kind]
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
            "connectionstyle": "arc3,rad=0.08",  # so that both directions are visible
        },
    )

# SPDX-License-Identifier: Apache-2.0
"""Common parts of the plots of machines, plans and jobs."""

from __future__ import annotations

import contextlib
import itertools
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import matplotlib.axes
    import matplotlib.axis
    import matplotlib.figure

    from pccl.topology.picture import Picture

GPU_COLOUR = "#228833"

_ADVICE = "pictures need matplotlib and networkx: pip install matplotlib networkx"


@contextlib.contextmanager
def advised() -> Iterator[None]:
    """Raise ImportError with installation advice where an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(_ADVICE) from error


def new_figure(width: float, height: float, *, is_placed: bool = False) -> Picture:
    """Return an empty figure of the given inches, with automatic placement of its axes.

    With ``is_placed`` the caller places the axes.
    """
    with advised():
        from pccl.topology.picture import Picture
    return Picture(width, height, is_placed=is_placed)


def number_whole(axis: matplotlib.axis.Axis, count: int, most: int = 16) -> None:
    """Label whole numbers from 0 to below ``count`` on an axis: at most ``most`` labels."""
    steps = (first * 10**power for power in itertools.count() for first in (1, 2, 5))
    step = next(step for step in steps if count <= step * most)
    axis.set_ticks(range(0, count, step))


class Bar(typing.NamedTuple):
    """Bar in a row, from ``begin`` to ``end`` on the x axis."""

    row: float
    begin: float
    end: float
    colour: str


def draw_bars(axes: matplotlib.axes.Axes, bars: list[Bar], height: float) -> None:
    """Draw all ``bars`` as one artist: thousands of separate artists would take a minute."""
    from matplotlib.collections import PolyCollection

    corners = []
    for bar in bars:
        low, high = bar.row - height / 2, bar.row + height / 2
        corners.append([(bar.begin, low), (bar.begin, high), (bar.end, high), (bar.end, low)])
    axes.add_collection(
        PolyCollection(
            corners,
            facecolors=[bar.colour for bar in bars],
            edgecolors="white",
            linewidths=0.3,
            alpha=0.7,
        )
    )
    axes.autoscale_view()


def svg(draw: Callable[[], matplotlib.figure.Figure]) -> str | None:
    """Return a figure as SVG for notebooks; None where a required library is missing."""
    try:
        figure = draw()
        from pccl.topology.picture import svg_of
    except ImportError:
        return None
    return svg_of(figure)

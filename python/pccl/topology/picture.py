# SPDX-License-Identifier: Apache-2.0
"""Figure class of all ``plot()`` functions, with SVG output in notebooks."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture", "svg_of"]


class Picture(Figure):
    """Figure of matplotlib without pyplot: it opens no window and needs no close.

    Titles, labels and legends outside the axes reduce the size of the axes, so that ``savefig``
    clips nothing, unless the caller places the axes. A notebook displays the figure as SVG, with or
    without ``%matplotlib inline``.
    """

    def __init__(self, width: float, height: float, *, is_placed: bool = False) -> None:
        super().__init__(figsize=(width, height), layout=None if is_placed else "constrained")

    def _repr_svg_(self) -> str:
        return svg_of(self)


def svg_of(figure: Figure) -> str:
    """Return the text of an SVG with a tight bounding box."""
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    return text.getvalue()

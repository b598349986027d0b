# SPDX-License-Identifier: Apache-2.0
"""The figure of every ``plot()``: one that shows itself in notebooks."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture", "svg_of"]


class Picture(Figure):
    """A figure of matplotlib, without pyplot: nothing needs to be closed, and no window opens.

    What its axes do not hold (titles, labels, legends) makes them smaller, so that ``savefig``
    cuts nothing off, unless the drawing places its axes itself. A notebook shows it as an SVG,
    whether ``%matplotlib inline`` was said or not.
    """

    def __init__(self, width: float, height: float, *, is_placed: bool = False) -> None:
        super().__init__(figsize=(width, height), layout=None if is_placed else "constrained")

    def _repr_svg_(self) -> str:
        return svg_of(self)


def svg_of(figure: Figure) -> str:
    """Return the text of an SVG that ends where the picture does."""
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    return text.getvalue()

# SPDX-License-Identifier: Apache-2.0
"""A picture that ``plot()`` gives: its pixels, and where its letters are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from matplotlib.text import Text

DPI = 80
Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.int_]]"


class Subject(Protocol):
    """What is drawn."""

    def plot(self) -> Figure: ...


class Drawn:
    """A picture, and what it shows of itself, no more and no less: rows, columns, colours."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.figure: Figure = subject.plot()
        self.figure.set_dpi(DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self.canvas.draw()
        self.pixels: Pixels = np.asarray(self.canvas.buffer_rgba())[:, :, :3].astype(int)
        (self.axes,) = self.figure.axes

    @property
    def below_the_heading(self) -> Pixels:
        """The pixels of what is drawn, without heading and legend."""
        rows, columns = self.pixels.shape[:2]
        box = self.axes.get_position()
        top, bottom = int((1 - box.y1) * rows), int((1 - box.y0) * rows)
        return self.pixels[top:bottom, int(box.x0 * columns) : int(box.x1 * columns)]

    def letters(self) -> list[tuple[str, Any]]:
        """Each text with the box around its letters, in pixels."""
        renderer = self.canvas.get_renderer()
        return [
            (t.get_text(), t.get_window_extent(renderer)) for t in self._texts() if t.get_text()
        ]

    def _texts(self) -> Iterator[Text]:
        axes, legend = self.axes, self.axes.get_legend()
        yield from axes.texts
        yield from legend.get_texts() if legend else []
        yield axes.title
        yield from (getattr(axes, f"_{side}_title") for side in ("left", "right"))
        if axes.axison:
            for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                yield axis.label
                least, most = sorted(limits)
                ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
                yield from (label for place, label in ticks if least <= place <= most)

    def check_ink(self) -> None:
        """Assert that it shows something, and that all of it is inside the frame."""
        ink = self.pixels.min(axis=2) < 200
        assert 0.005 < ink.mean() < 0.6
        inside = self.below_the_heading.min(axis=2) < 200
        assert inside.sum() > 100
        assert min(np.ptp(np.flatnonzero(inside.any(axis=axis))) for axis in (0, 1)) > 15
        frame = np.ones_like(ink)
        frame[2:-2, 2:-2] = False
        assert not (ink & frame).any(), "something is cut off"

    def check_letters(self) -> None:
        """Assert that all letters are inside the frame, and none over others."""
        height, width = self.pixels.shape[:2]
        letters = self.letters()
        assert letters
        for text, box in letters:
            assert box.x0 >= 0, text
            assert box.y0 >= 0, text
            assert box.x1 <= width, text
            assert box.y1 <= height, text
        for (one, a), (other, b) in itertools.combinations(letters, 2):
            overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert min(overlap) <= 1, (one, other)

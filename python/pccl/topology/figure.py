"""What pictures of machines, plans and jobs share."""

from __future__ import annotations

import contextlib
import io
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import matplotlib.figure

GPU_COLOUR = "#228833"

_ADVICE = "pictures need matplotlib and networkx: pip install matplotlib networkx"


@contextlib.contextmanager
def advised() -> Iterator[None]:
    """Say how to get what an import inside does not find."""
    try:
        yield
    except ImportError as error:
        raise ImportError(_ADVICE) from error


def new_figure(width: float, height: float) -> matplotlib.figure.Figure:
    """Return an empty figure; sizes are in inches."""
    with advised():
        from matplotlib.figure import Figure
    # Not through pyplot: nothing to close, and no window.
    return Figure(figsize=(width, height))


def svg(draw: Callable[[], matplotlib.figure.Figure]) -> str | None:
    """Return a picture as notebooks show it; None where a library for it is missing."""
    try:
        figure = draw()
    except ImportError:
        return None
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    return text.getvalue()

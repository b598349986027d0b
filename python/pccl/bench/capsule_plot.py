# SPDX-License-Identifier: Apache-2.0
"""Plots of measured capsules, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.topology.figure import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.figure

    from pccl.bench.capsules import Row

__all__ = ["draw_times"]


def draw_times(rows: Sequence[Row]) -> matplotlib.figure.Figure:
    """Draw the times of the capsule and of the group's own choice, over sizes.

    Parameters
    ----------
    rows
        Result of ``pccl.bench.capsules.measured``.

    Raises
    ------
    ImportError
        matplotlib is missing (``pip install matplotlib``).
    """
    figure = new_figure(6.0, 3.6)
    axes = figure.add_subplot()
    sizes = [row.size for row in rows]
    axes.loglog(sizes, [row.capsule_us for row in rows], "o-", label="the capsule")
    axes.loglog(sizes, [row.chosen_us for row in rows], "s--", label="what the group chooses")
    axes.set_xlabel("bytes")
    axes.set_ylabel("microseconds")
    axes.legend()
    return figure

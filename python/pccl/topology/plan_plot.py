# SPDX-License-Identifier: Apache-2.0
"""Plots of plans, with matplotlib."""

from __future__ import annotations

import collections
import itertools
import math
import typing

from pccl.topology.figure import GPU_COLOUR, new_figure

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

    import matplotlib.axes
    import matplotlib.figure

    from pccl.topology.values import Channel

_MOST_IN_LEGEND = 16
_LEGEND = 3.0  # inches
_FEW_GPUS = 24
_FRAME = 1.45  # half its width; GPUs lie on a circle of radius 1

_Point: typing.TypeAlias = tuple[float, float]


class _Kind(typing.NamedTuple):
    """Common attributes of channels that are drawn as one."""

    order: tuple[int, ...]
    nets: tuple[int, int] | None
    bandwidth: float


def draw_plan(
    channels: Iterable[Channel], *, gpus: int, pattern: str, nodes: int, title: str
) -> matplotlib.figure.Figure:
    """Draw the GPUs on a circle, and each order of GPUs as a curve."""
    height = 5.0 if gpus <= _FEW_GPUS else 8.0
    figure = new_figure(height + _LEGEND, height, is_placed=True)
    axes = figure.add_axes((0.02, 0.02, 0.9 * height / (height + _LEGEND), 0.9))
    # matplotlib ignores arrows and labels in its automatic limits.
    axes.set_xlim(-_FRAME, _FRAME)
    axes.set_ylim(-_FRAME, _FRAME)
    axes.set_aspect("equal")
    axes.set_axis_off()
    kinds = collections.Counter(
        _Kind(tuple(channel.order), channel.nets, round(channel.bandwidth, 3))
        for channel in channels
    )
    colours = _colours(len(kinds))
    for index, (kind, colour) in enumerate(zip(kinds, colours, strict=True)):
        hops = _hops(kind.order, pattern, is_closed=nodes == 1)
        _draw_hops(axes, gpus, hops, colour, bend=0.12 + 0.5 * index / max(len(kinds), 6))
    _draw_entries(axes, gpus, list(zip(kinds, colours, strict=True)))
    _draw_gpus(axes, gpus)
    _add_legend(axes, list(zip(kinds.items(), colours, strict=True)))
    axes.set_title(title, fontsize=9, loc="left")
    return figure


def _colours(count: int) -> list[typing.Any]:
    import matplotlib as mpl

    palette = mpl.colormaps["tab10" if count <= 10 else "tab20"]
    return [palette(index % palette.N) for index in range(count)]


def _on_circle(gpu: float, count: int, radius: float = 1.0) -> _Point:
    if count == 1:
        return 0.0, radius - 1.0
    angle = math.pi / 2 - 2 * math.pi * gpu / count
    return radius * math.cos(angle), radius * math.sin(angle)


def _letters(count: int) -> int:
    """Return the font size of GPU numbers in points; the size of the discs follows it."""
    if count <= 8:
        return 10
    return 8 if count <= _FEW_GPUS else 5


def _hops(order: tuple[int, ...], pattern: str, *, is_closed: bool) -> list[tuple[int, int]]:
    if pattern == "heads":
        return [(gpu, order[0]) for gpu in order[1:]]
    hops = list(itertools.pairwise(order))
    if pattern == "ring" and is_closed and len(order) > 1:
        hops.append((order[-1], order[0]))
    return hops


def _draw_hops(
    axes: matplotlib.axes.Axes,
    count: int,
    hops: list[tuple[int, int]],
    colour: object,
    *,
    bend: float,
) -> None:
    for source, target in hops:
        axes.annotate(
            "",
            _on_circle(target, count),
            _on_circle(source, count),
            arrowprops={
                "arrowstyle": "->",
                "color": colour,
                "linewidth": 1.3,
                "alpha": 0.85,
                "shrinkA": _letters(count) + 1,
                "shrinkB": _letters(count) + 1,
                "connectionstyle": f"arc3,rad={bend}",
            },
            zorder=1,
        )


def _draw_entries(
    axes: matplotlib.axes.Axes, count: int, kinds: list[tuple[_Kind, typing.Any]]
) -> None:
    """Mark the GPU at which a channel enters from the network; draw several marks side by side."""
    entering: dict[int, list[typing.Any]] = collections.defaultdict(list)
    for kind, colour in kinds:
        if kind.nets is not None:
            entering[kind.order[0]].append(colour)
    for gpu, colours in entering.items():
        for place, colour in enumerate(colours):
            shift = 0.012 * count * (place - (len(colours) - 1) / 2)
            x, y = _on_circle(gpu + shift, count, radius=1.2)
            axes.plot(x, y, marker="v", color=colour, markersize=6, linestyle="")


def _draw_gpus(axes: matplotlib.axes.Axes, count: int) -> None:
    for gpu in range(count):
        x, y = _on_circle(gpu, count)
        axes.text(
            x,
            y,
            str(gpu),
            ha="center",
            va="center",
            fontsize=_letters(count),
            bbox={"boxstyle": "circle", "facecolor": GPU_COLOUR, "edgecolor": "white"},
            color="white",
            zorder=3,
        )


def _add_legend(
    axes: matplotlib.axes.Axes, kinds: list[tuple[tuple[_Kind, int], typing.Any]]
) -> None:
    from matplotlib.lines import Line2D

    entries = []
    for (kind, times), colour in kinds[:_MOST_IN_LEGEND]:
        label = f"{times} x {kind.bandwidth:g} GB/s"
        if kind.nets is not None:
            label += f", net{kind.nets[0]} in, net{kind.nets[1]} out"
        entries.append(Line2D([], [], color=colour, linewidth=2, label=label))
    if any(kind.nets for (kind, _), _ in kinds):
        label = "from the network to this GPU"
        entries.append(Line2D([], [], color="grey", marker="v", linestyle="", label=label))
    more = len(kinds) - _MOST_IN_LEGEND
    if more > 0:
        entries.append(Line2D([], [], linestyle="", label=f"and {more} more orders"))
    axes.legend(
        handles=entries,
        title="channels",
        title_fontsize=8,
        alignment="left",
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        fontsize=7,
        frameon=False,
    )

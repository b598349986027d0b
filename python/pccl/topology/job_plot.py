# SPDX-License-Identifier: Apache-2.0
"""Plots of jobs, with matplotlib."""

from __future__ import annotations

import textwrap
import typing

from pccl.topology.figure import new_figure
from pccl.topology.words import counted

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.axes
    import matplotlib.figure

    from pccl.topology.host import Host

_BOX = 2.6  # inches per host
_LEAST_BOXES = 2  # minimum width for the heading
_BOTTOM, _TOP = 1.3, 2.2
_MOST_HOSTS = 8
_MOST_RANKS = 8
_MOST_POSITIONS = 32
_LONGEST_NAME = 20
_LETTERS_A_BOX = 34
_COLOURS = ("#4477aa", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#66ccee", "#bbbbbb")


def draw_job(
    hosts: Sequence[Host], order: Sequence[int], *, title: str
) -> matplotlib.figure.Figure:
    """Draw a box for each host, in one row above the networks that connect the hosts."""
    shown = hosts[:_MOST_HOSTS]
    boxes = max(len(shown), _LEAST_BOXES)
    is_joined = len(hosts) > 1
    figure = new_figure(_BOX * boxes, 3.2 if is_joined else 2.0, is_placed=True)
    axes = figure.add_axes((0.0, 0.0, 1.0, 0.82 if is_joined else 0.72))
    axes.set_axis_off()
    left = (boxes - len(shown)) / 2
    axes.set_xlim(-left, boxes - left)
    axes.set_ylim(0.15 if is_joined else _BOTTOM - 0.1, _TOP + 0.1)
    subnets = list(dict.fromkeys(host.subnet for host in shown))
    for index, host in enumerate(shown):
        _draw_host(axes, index, host)
        if is_joined:
            _draw_network(axes, index, host, _COLOURS[subnets.index(host.subnet) % len(_COLOURS)])
    for number, subnet in enumerate(subnets if is_joined else []):
        _draw_subnet(axes, number, subnet, [host.subnet == subnet for host in shown])
    more = len(hosts) - len(shown)
    first = title + (f" ({more} hosts not shown)" if more > 0 else "")
    axes.set_title(_heading(first, order, _LETTERS_A_BOX * boxes), fontsize=9)
    return figure


def _heading(first: str, order: Sequence[int], letters: int) -> str:
    shown = list(map(str, order[:_MOST_POSITIONS]))
    if len(order) > _MOST_POSITIONS:
        shown.append("...")
    return "\n".join([first, *textwrap.wrap(f"ring: {' '.join(shown)}", letters)])


def _in_words(ranks: Sequence[int]) -> str:
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    if len(ranks) > _MOST_RANKS:
        return f"ranks {' '.join(map(str, ranks[: _MOST_RANKS - 2]))} ... {ranks[-1]}"
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {' '.join(map(str, ranks))}"


def _draw_host(axes: matplotlib.axes.Axes, index: int, host: Host) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (index + 0.1, _BOTTOM),
        0.8,
        _TOP - _BOTTOM,
        boxstyle="round,pad=0.02",
        facecolor="#f4f4f4",
        edgecolor="#555555",
    )
    axes.add_patch(box)
    name = host.name
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 3]}..."
    axes.text(index + 0.5, 2.02, name, ha="center", fontsize=9, weight="bold")
    machine = host.topology
    lines = [
        _in_words(host.ranks),
        f"{counted(len(machine.gpus), 'GPU')}, {counted(len(machine.nets), 'NIC port')}",
        counted(len([node for node in machine.nodes if node.type == "cpu"]), "NUMA node"),
        "links measured" if host.is_measured else "links not measured",
    ]
    axes.text(index + 0.5, 1.92, "\n".join(lines), ha="center", va="top", fontsize=8)


def _draw_network(axes: matplotlib.axes.Axes, index: int, host: Host, colour: str) -> None:
    axes.plot([index + 0.5, index + 0.5], [0.45, _BOTTOM - 0.02], color=colour, linewidth=2)
    text = f"{host.interface or 'network'}\n{host.bandwidth:.4g} GB/s\n{host.provenance}"
    axes.text(index + 0.53, 0.87, text, fontsize=7, va="center")


def _draw_subnet(axes: matplotlib.axes.Axes, number: int, subnet: str, members: list[bool]) -> None:
    places = [index + 0.5 for index, is_member in enumerate(members) if is_member]
    colour = _COLOURS[number % len(_COLOURS)]
    axes.plot([places[0] - 0.2, places[-1] + 0.2], [0.45, 0.45], color=colour, linewidth=5)
    axes.text(places[0] - 0.2, 0.25, subnet or "subnet unknown", fontsize=7, color=colour)

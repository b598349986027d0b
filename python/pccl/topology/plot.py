# SPDX-License-Identifier: Apache-2.0
"""Plots of machines, with matplotlib and networkx."""

from __future__ import annotations

import collections
import math
import typing

from pccl.topology.figure import GPU_COLOUR, advised, new_figure

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import matplotlib.axes
    import matplotlib.figure
    import networkx

    from pccl.topology.values import Link, Node

# Rows from top to bottom; nodes below a CPU are in the order of its tree.
_ROWS = {"cpu": 4.0, "pci": 3.0, "gpu": 1.6, "nic": 1.6, "net": 0.8, "nvs": 0.0}
_NODE_COLOURS = {
    "cpu": "#4477aa",
    "pci": "#bbbbbb",
    "gpu": GPU_COLOUR,
    "nic": "#ccbb44",
    "net": "#ee9944",
    "nvs": "#66ccee",
}
_DARK = {"cpu", "gpu"}
_LINK_COLOURS = {
    "NVL": "#228833",
    "PCI": "#777777",
    "C2C": "#aa3377",
    "SYS": "#4477aa",
    "NET": "#ee9944",
    "LOC": "#bbbbbb",
}
_COLUMN = 0.62  # inches
_MOST_HOSTS = 4
_MOST_LABELS = 130

_Places: typing.TypeAlias = dict[str, tuple[float, float]]


def network(nodes: Iterable[Node], links: Iterable[Link]) -> networkx.DiGraph:
    """Return the graph of a machine."""
    with advised():
        import networkx

    graph = networkx.DiGraph()
    for node in nodes:
        graph.add_node(node.name, type=node.type, label=node.label, host=node.host)
    for link in links:
        graph.add_edge(link.source, link.target, type=link.type, bandwidth=link.bandwidth)
    return graph


def draw_machine(
    nodes: Sequence[Node], links: Sequence[Link], *, title: str
) -> matplotlib.figure.Figure:
    """Draw CPUs, PCIe switches, GPUs, NICs and NVSwitches, with the bandwidths of their links."""
    figure = new_figure(6.0, 4.0, is_placed=True)
    graph = network(nodes, links)
    hosts = 1 + max((host for _, host in graph.nodes(data="host")), default=0)
    hidden = [name for name, host in graph.nodes(data="host") if host >= _MOST_HOSTS]
    graph.remove_nodes_from(hidden)
    places = _positions(graph)
    axes = figure.add_axes((0.0, 0.08, 1.0, 0.84))
    axes.set_axis_off()
    figure.set_size_inches(*_set_limits(axes, places))
    _draw_links(axes, graph, places)
    _draw_nodes(axes, graph, places)
    _add_legend(axes, graph)
    more = f" ({hosts - _MOST_HOSTS} of {hosts} hosts not shown)" if hidden else ""
    axes.set_title(f"{title}{more}; GB/s", fontsize=9, loc="left", x=0.01)
    return figure


def _set_limits(axes: matplotlib.axes.Axes, places: _Places) -> tuple[float, float]:
    """Set the limits, which matplotlib does not derive from annotations; return the inches."""
    columns = [x for x, _ in places.values()] or [0.0]
    lowest = min((y for _, y in places.values()), default=0.0)
    axes.set_xlim(min(columns) - 0.8, max(columns) + 0.8)
    axes.set_ylim(lowest - 0.6, _ROWS["cpu"] + 0.5)
    width = _COLUMN * (1.6 + max(columns) - min(columns))
    return max(6.0, width), 0.8 * (_ROWS["cpu"] - lowest) + 1.4


def _positions(graph: networkx.DiGraph) -> _Places:
    """Place the leaves of the trees of CPUs side by side, and parents above the middle."""
    places: _Places = {}
    next_x = 0.0

    def below(name: str) -> Iterable[str]:
        for child in graph.successors(name):
            goes_down = graph.edges[name, child]["type"] in {"PCI", "LOC", "NET"}
            if goes_down and child not in places:
                yield child

    def place(name: str) -> float:
        nonlocal next_x
        kind = graph.nodes[name]["type"]
        places[name] = (0.0, _ROWS[kind])
        columns = [place(child) for child in below(name)]
        if not columns:
            columns = [next_x]
            next_x += 1
        places[name] = (sum(columns) / len(columns), _ROWS[kind])
        return places[name][0]

    for name in graph:
        if graph.nodes[name]["type"] == "cpu":
            place(name)
            next_x += 0.5
    for name in graph:
        if name not in places:
            columns = [places[peer][0] for peer in graph.successors(name) if peer in places]
            middle = sum(columns) / len(columns) if columns else next_x
            places[name] = (middle, _ROWS[graph.nodes[name]["type"]])
    return places


def _links_by_type(graph: networkx.DiGraph) -> dict[str, list[tuple[str, str]]]:
    """Return the links by type, each pair once."""
    kinds: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    order = {name: index for index, name in enumerate(graph)}
    for source, target, kind in graph.edges(data="type"):
        if order[source] < order[target]:
            kinds[kind].append((source, target))
    return kinds


def _draw_links(axes: matplotlib.axes.Axes, graph: networkx.DiGraph, places: _Places) -> None:
    for kind, edges in _links_by_type(graph).items():
        is_labelled = _differ(graph, edges) and len(graph.edges) <= _MOST_LABELS
        for source, target in edges:
            bandwidth = graph.edges[source, target]["bandwidth"]
            is_level = places[source][1] == places[target][1]
            axes.annotate(
                "",
                places[target],
                places[source],
                arrowprops={
                    "arrowstyle": "-",
                    "color": _LINK_COLOURS[kind],
                    "linewidth": 0.6 + 0.55 * math.log2(1 + bandwidth / 6),
                    "alpha": 0.75,
                    "connectionstyle": f"arc3,rad={0.25 if is_level else 0.0}",
                },
                zorder=1,
            )
            if is_labelled and not is_level:
                _label_link(axes, kind, bandwidth, places[source], places[target])


def _differ(graph: networkx.DiGraph, edges: list[tuple[str, str]]) -> bool:
    """Return whether links of a type differ in bandwidth; otherwise the legend shows it."""
    return len({graph.edges[edge]["bandwidth"] for edge in edges}) > 1


def _label_link(
    axes: matplotlib.axes.Axes,
    kind: str,
    bandwidth: float,
    start: tuple[float, float],
    end: tuple[float, float],
) -> None:
    # If many links meet in one switch, there is more space near their other ends.
    share = 0.27 if kind == "NVL" else 0.6
    axes.text(
        start[0] + share * (end[0] - start[0]),
        start[1] + share * (end[1] - start[1]),
        f"{bandwidth:.4g}",
        fontsize=6,
        color=_LINK_COLOURS[kind],
        ha="center",
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
        zorder=2,
    )


def _draw_nodes(axes: matplotlib.axes.Axes, graph: networkx.DiGraph, places: _Places) -> None:
    import networkx

    for kind, colour in _NODE_COLOURS.items():
        names = [name for name in graph if graph.nodes[name]["type"] == kind]
        networkx.draw_networkx_nodes(
            graph,
            places,
            nodelist=names,
            node_color=colour,
            node_size=430,
            node_shape="s" if kind in {"cpu", "pci", "nvs"} else "o",
            edgecolors="white",
            ax=axes,
        )
        for name in names:
            axes.text(
                *places[name],
                name,
                fontsize=6.5,
                color="white" if kind in _DARK else "black",
                ha="center",
                va="center",
                zorder=3,
            )


def _add_legend(axes: matplotlib.axes.Axes, graph: networkx.DiGraph) -> None:
    from matplotlib.lines import Line2D

    kinds = _links_by_type(graph)
    lines = []
    for kind in (kind for kind in _LINK_COLOURS if kind in kinds):
        found = sorted(graph.edges[edge]["bandwidth"] for edge in kinds[kind])
        widths = f"{found[0]:.4g}" + (f" to {found[-1]:.4g}" if found[0] != found[-1] else "")
        label = kind if kind == "LOC" else f"{kind} {widths}"
        lines.append(Line2D([], [], color=_LINK_COLOURS[kind], linewidth=2, label=label))
    axes.legend(
        handles=lines,
        loc="lower center",
        bbox_to_anchor=(0.5, -0.08),
        ncols=6,
        fontsize=7,
        frameon=False,
    )

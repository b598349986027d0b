"""Pictures of machines and plans, with matplotlib and networkx."""

from __future__ import annotations

import collections
import functools
import io
import itertools
import math
import typing

from pccl.topology import Plan, Topology

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

    import matplotlib.axes
    import matplotlib.figure
    import networkx

# From top to bottom; what hangs below a CPU in the order of its tree.
_ROWS = {"cpu": 4.0, "pci": 3.0, "gpu": 1.5, "nic": 1.5, "net": 0.7, "nvs": 0.0}
_NODE_COLOURS = {
    "cpu": "#4477aa",
    "pci": "#bbbbbb",
    "gpu": "#228833",
    "nic": "#ccbb44",
    "net": "#ee9944",
    "nvs": "#66ccee",
}
_LINK_COLOURS = {
    "NVL": "#228833",
    "PCI": "#777777",
    "C2C": "#aa3377",
    "SYS": "#4477aa",
    "NET": "#ee9944",
    "LOC": "#bbbbbb",
}
_ADVICE = "pictures need matplotlib and networkx: pip install pccl[plot]"


def network(topology: Topology) -> networkx.DiGraph:
    """Return the machine's graph."""
    import networkx

    graph = networkx.DiGraph()
    for node in topology.nodes:
        graph.add_node(node.name, type=node.type, label=node.label, host=node.host)
    for link in topology.links:
        graph.add_edge(link.source, link.target, type=link.type, bandwidth=link.bandwidth)
    return graph


def svg(subject: Topology | Plan) -> str | None:
    """Draw as SVG; None where matplotlib or networkx is missing."""
    try:
        figure = draw_machine(subject) if isinstance(subject, Topology) else draw_plan(subject)
    except ImportError:
        return None
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    return text.getvalue()


def _new_figure(width: float, height: float) -> matplotlib.figure.Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_ADVICE) from error
    # Not through pyplot: nothing to close, and no window.
    return Figure(figsize=(width, height))


def _positions(graph: networkx.DiGraph) -> dict[str, tuple[float, float]]:
    """Place leaves of the trees below the CPUs side by side, and what is above over the middle."""
    places: dict[str, tuple[float, float]] = {}
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


def _draw_links(
    axes: matplotlib.axes.Axes,
    graph: networkx.DiGraph,
    places: dict[str, tuple[float, float]],
) -> None:
    kinds = _links_by_type(graph)
    drawn = len(graph.edges)
    for kind, edges in kinds.items():
        for source, target in edges:
            (x0, y0), (x1, y1) = places[source], places[target]
            bandwidth = graph.edges[source, target]["bandwidth"]
            bend = 0.25 if y0 == y1 else 0.0
            axes.annotate(
                "",
                (x1, y1),
                (x0, y0),
                arrowprops={
                    "arrowstyle": "-",
                    "color": _LINK_COLOURS[kind],
                    "linewidth": 0.6 + 0.55 * math.log2(1 + bandwidth / 6),
                    "alpha": 0.75,
                    "connectionstyle": f"arc3,rad={bend}",
                },
                zorder=1,
            )
            if drawn <= 130 and y0 != y1 and kind != "LOC":
                axes.text(
                    x0 + 0.6 * (x1 - x0),
                    y0 + 0.6 * (y1 - y0),
                    f"{bandwidth:g}",
                    fontsize=6,
                    color=_LINK_COLOURS[kind],
                    ha="center",
                    va="center",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
                    zorder=2,
                )


def _links_by_type(graph: networkx.DiGraph) -> dict[str, list[tuple[str, str]]]:
    """Return links by type, each pair once."""
    kinds: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    order = {name: index for index, name in enumerate(graph)}
    for source, target, kind in graph.edges(data="type"):
        if order[source] < order[target]:
            kinds[kind].append((source, target))
    return kinds


def draw_machine(topology: Topology) -> matplotlib.figure.Figure:
    """Draw CPUs, PCIe switches, GPUs, NICs and NVSwitches, with the bandwidths of their links."""
    import networkx

    graph = network(topology)
    places = _positions(graph)
    columns = 1 + max((x for x, _ in places.values()), default=0)
    figure = _new_figure(min(max(6.0, 0.62 * columns), 40.0), 4.6)
    axes = figure.add_axes((0.0, 0.06, 1.0, 0.86))
    _draw_links(axes, graph, places)
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
    networkx.draw_networkx_labels(graph, places, font_size=6.5, font_color="black", ax=axes)
    _legend(axes, [kind for kind in _LINK_COLOURS if kind in _links_by_type(graph)])
    axes.set_title(f"{topology!r}; GB/s", fontsize=9, loc="left")
    axes.set_axis_off()
    axes.margins(0.05)
    return figure


def _legend(axes: matplotlib.axes.Axes, kinds: list[str]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=_LINK_COLOURS[kind], linewidth=2, label=kind) for kind in kinds]
    axes.legend(
        handles=lines,
        loc="lower center",
        bbox_to_anchor=(0.5, -0.08),
        ncols=6,
        fontsize=7,
        frameon=False,
    )


def draw_plan(plan: Plan) -> matplotlib.figure.Figure:
    """Draw the GPUs on a circle, and each order of them as a curve."""
    import matplotlib as mpl

    groups = collections.Counter(
        (tuple(channel.order), channel.nets, round(channel.bandwidth, 3))
        for channel in plan.channels
    )
    figure = _new_figure(8.0, 5.0)
    axes = figure.add_axes((0.0, 0.0, 0.62, 0.92))
    count = len(plan.topology.gpus)
    circle = functools.partial(_on_circle, count=count)
    colours = mpl.colormaps["tab20"]
    for index, ((order, nets, bandwidth), times) in enumerate(groups.items()):
        colour = colours(index % 20)
        label = f"{times} x {bandwidth:g} GB/s"
        if nets is not None:
            label += f", net{nets[0]} in, net{nets[1]} out"
        if index < 16:
            axes.plot([], [], color=colour, linewidth=2, label=label)
        elif index == 16:
            axes.plot([], [], alpha=0, label=f"and {len(groups) - 16} more")
        bend = 0.12 + 0.5 * index / max(len(groups), 6)
        for source, target in _hops(plan, list(order)):
            _draw_hop(axes, circle(source), circle(target), colour, bend)
        if nets is not None:
            x, y = circle(order[0], radius=1.16 + 0.02 * (index % 4))
            axes.plot(x, y, marker="v", color=colour, markersize=5)
    for gpu in range(count):
        x, y = circle(gpu)
        axes.text(
            x,
            y,
            str(gpu),
            ha="center",
            va="center",
            fontsize=8 if count <= 16 else 5,
            bbox={"boxstyle": "circle", "facecolor": _NODE_COLOURS["gpu"], "edgecolor": "white"},
            color="white",
            zorder=3,
        )
    axes.set_title(repr(plan), fontsize=9, loc="left")
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.12)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=7, frameon=False)
    return figure


def _on_circle(gpu: int, *, count: int, radius: float = 1.0) -> tuple[float, float]:
    angle = math.pi / 2 - 2 * math.pi * gpu / max(count, 1)
    return radius * math.cos(angle), radius * math.sin(angle)


def _hops(plan: Plan, order: list[int]) -> list[tuple[int, int]]:
    if plan.pattern == "heads":
        return [(gpu, order[0]) for gpu in order[1:]]
    hops = list(itertools.pairwise(order))
    if plan.pattern == "ring" and plan.nodes == 1 and len(order) > 1:
        hops.append((order[-1], order[0]))
    return hops


def _draw_hop(
    axes: matplotlib.axes.Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: object,
    bend: float,
) -> None:
    axes.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "->",
            "color": colour,
            "linewidth": 1.3,
            "alpha": 0.85,
            "shrinkA": 9,
            "shrinkB": 9,
            "connectionstyle": f"arc3,rad={bend}",
        },
        zorder=1,
    )

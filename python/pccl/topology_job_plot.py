"""Pictures of jobs, with matplotlib."""

from __future__ import annotations

import io
import typing

if typing.TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from pccl.topology_job import Host, Job

_BOX = 2.6  # inches that a host takes
_MOST_HOSTS = 8
_COLOURS = ("#4477aa", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#66ccee", "#bbbbbb")
_ADVICE = "pictures need matplotlib: pip install pccl[plot]"


def svg(job: Job) -> str | None:
    """Draw as SVG; None where matplotlib is missing."""
    try:
        figure = draw(job)
    except ImportError:
        return None
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    return text.getvalue()


def draw(job: Job) -> matplotlib.figure.Figure:
    """Draw a box for each host, of one subnet side by side, above the networks that join them."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_ADVICE) from error
    shown = job.hosts[:_MOST_HOSTS]
    figure = Figure(figsize=(_BOX * max(len(shown), 2), 3.2))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, max(len(shown), 2))
    axes.set_ylim(0, 2.4)
    subnets = list(dict.fromkeys(host.subnet for host in shown))
    for index, host in enumerate(shown):
        colour = _COLOURS[subnets.index(host.subnet) % len(_COLOURS)]
        _draw_host(axes, index, host)
        if len(job.hosts) > 1:
            _draw_network(axes, index, host, colour)
    for number, subnet in enumerate(subnets if len(job.hosts) > 1 else []):
        _draw_subnet(axes, number, subnet, [host.subnet == subnet for host in shown])
    more = len(job.hosts) - len(shown)
    order = job.order
    cut = " ..." if len(order) > 32 else ""
    title = f"{job!r}" + (f" ({more} hosts not shown)" if more else "")
    axes.set_title(f"{title}\nring: {' '.join(map(str, order[:32]))}{cut}", fontsize=9)
    return figure


def _draw_host(axes: matplotlib.axes.Axes, index: int, host: Host) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (index + 0.1, 1.1),
        0.8,
        1.1,
        boxstyle="round,pad=0.02",
        facecolor="#f4f4f4",
        edgecolor="#555555",
    )
    axes.add_patch(box)
    axes.text(index + 0.5, 2.05, host.name, ha="center", fontsize=9, weight="bold")
    ranks = [str(rank) for rank in host.ranks[:12]]
    if len(host.ranks) > 12:
        ranks.append("...")
    machine = host.topology
    lines = [
        f"ranks {' '.join(ranks)}",
        f"{len(machine.gpus)} GPUs, {len(machine.nets)} NIC ports",
        f"{len([node for node in machine.nodes if node.type == 'cpu'])} NUMA nodes",
        "links measured" if host.is_measured else "links not measured",
    ]
    axes.text(index + 0.5, 1.95, "\n".join(lines), ha="center", va="top", fontsize=7)


def _draw_network(axes: matplotlib.axes.Axes, index: int, host: Host, colour: str) -> None:
    axes.plot([index + 0.5, index + 0.5], [0.45, 1.08], color=colour, linewidth=2)
    text = f"{host.interface or 'network'}\n{host.bandwidth:.4g} GB/s\n{host.provenance}"
    axes.text(index + 0.53, 0.77, text, fontsize=6.5, va="center")


def _draw_subnet(axes: matplotlib.axes.Axes, number: int, subnet: str, members: list[bool]) -> None:
    places = [index + 0.5 for index, is_member in enumerate(members) if is_member]
    colour = _COLOURS[number % len(_COLOURS)]
    axes.plot([places[0] - 0.2, places[-1] + 0.2], [0.45, 0.45], color=colour, linewidth=5)
    axes.text(places[0] - 0.2, 0.22, subnet or "subnet unknown", fontsize=7, color=colour)

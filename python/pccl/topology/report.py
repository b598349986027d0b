# SPDX-License-Identifier: Apache-2.0
"""Text output of ``pccl topo`` for machines and plans."""

from __future__ import annotations

import collections
import dataclasses
import math
import typing

from rich.console import Group
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

if typing.TYPE_CHECKING:
    from rich.console import RenderableType

    from pccl.topology.machine import Plan, Topology
    from pccl.topology.measure import Figure
    from pccl.topology.values import Node

_WIDTH = 80
_DOWNWARDS = {"PCI", "LOC", "NET"}


@dataclasses.dataclass
class _Machine:
    """Nodes and links of a topology, indexed for traversal."""

    topology: Topology

    def __post_init__(self) -> None:
        self.nodes = {node.name: node for node in self.topology.nodes}
        self.links = collections.defaultdict(list)
        for link in self.topology.links:
            self.links[link.source].append(link)

    def of_type(self, kind: str) -> list[Node]:
        return [node for node in self.nodes.values() if node.type == kind]

    def label(self, name: str, bandwidth: float | None) -> Text:
        node = self.nodes[name]
        text = Text(name, style="bold" if node.type in {"gpu", "net"} else "")
        if node.label not in {"", name}:
            text.append(f"  {node.label}", style="dim")
        if node.type == "gpu":
            text.append(f"  sm {node.sm}")
        if bandwidth is not None and node.type != "nic":
            text.append(f"  {bandwidth:.4g} GB/s", style="cyan")
        for link in self.links[name] if node.type == "gpu" else []:
            if link.type == "C2C":
                text.append(f"  C2C {link.bandwidth:.4g}", style="cyan")
        nvlinks = sum(link.bandwidth for link in self.links[name] if link.type == "NVL")
        if node.type == "gpu" and nvlinks:
            text.append(f"  NVLink {nvlinks:.4g}", style="green")
        if not node.usable:
            text.append("  left out", style="yellow")
        return text

    def grow(self, tree: Tree, name: str, above: str) -> None:
        for link in self.links[name]:
            if link.type not in _DOWNWARDS or link.target == above:
                continue
            grown = tree.add(self.label(link.target, link.bandwidth))
            self.grow(grown, link.target, name)


def _tree(machine: _Machine) -> RenderableType:
    trees: list[RenderableType] = []
    hosts = sorted({node.host for node in machine.nodes.values()})
    for host in hosts:
        cpus = [node for node in machine.of_type("cpu") if node.host == host]
        top = Tree(f"host {host}" if len(hosts) > 1 else "machine")
        for cpu in cpus:
            text = machine.label(cpu.name, None)
            for link in machine.links[cpu.name]:
                if link.type == "SYS":
                    text.append(f"  {link.target} {link.bandwidth:.4g} GB/s", style="blue")
            machine.grow(top.add(text), cpu.name, "")
        trees.append(top)
    if len(trees) > 2:
        trees[1:] = [Text(f"and {len(trees) - 1} more hosts", style="dim")]
    return Group(*trees)


def paths(topology: Topology) -> list[dict[str, object]]:
    """Return every path between two GPUs, and between a GPU and a port."""
    rows = []
    ends = [*topology.gpus, *topology.nets]
    for source in topology.gpus:
        for target in ends:
            if source.name == target.name:
                continue
            path = topology.path(source.name, target.name)
            rows.append(
                {
                    "from": source.name,
                    "to": target.name,
                    "type": path.type,
                    "bandwidth": path.bandwidth,
                    "hops": path.hops,
                }
            )
    return rows


def _matrix(topology: Topology, rows: list[dict[str, object]]) -> Table | None:
    """Return a matrix of path types, like ``nvidia-smi topo -m``; None if wider than 80 columns."""
    targets = [*topology.gpus, *topology.nets]
    if not topology.gpus or 6 + 6 * len(targets) > _WIDTH:
        return None
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("")
    for target in targets:
        table.add_column(target.name)
    types = {(row["from"], row["to"]): str(row["type"]) for row in rows}
    for source in topology.gpus:
        cells = [types.get((source.name, target.name), "-") for target in targets]
        table.add_row(Text(source.name, style="dim"), *cells)
    return table


def _summary(rows: list[dict[str, object]]) -> Table:
    """Return the number of paths of each type and bandwidth."""
    counts = collections.Counter(
        (
            "GPU to NIC" if str(row["to"]).startswith("net") else "GPU to GPU",
            row["type"],
            row["bandwidth"],
        )
        for row in rows
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("paths", "type", "GB/s", "number"):
        table.add_column(heading, justify="right" if heading in {"GB/s", "number"} else "left")
    for (kind, path_type, bandwidth), count in sorted(counts.items(), key=str):
        table.add_row(kind, str(path_type), f"{bandwidth:.4g}", str(count))
    return table


def _warnings(topology: Topology) -> RenderableType:
    lines = []
    for warning in topology.warnings:
        line = Text(warning.name, style="yellow")
        line.append(f"  {warning.subject}: {warning.message}", style="default")
        if warning.repair:
            line.append(f"; assumed: {warning.repair}", style="dim")
        lines.append(line)
    return Group(*lines) if lines else Text("no warnings", style="green")


def machine(topology: Topology) -> RenderableType:
    """Return the machine as a tree, with its paths and warnings."""
    rows = paths(topology)
    parts: list[RenderableType] = [
        Text(f"{topology!r}, digest {topology.digest}", style="bold"),
        _tree(_Machine(topology)),
    ]
    matrix = _matrix(topology, rows)
    if matrix:
        parts += [Text(), matrix]
    if rows:
        parts += [Text(), _summary(rows)]
    return Group(*parts, Text(), _warnings(topology))


def plan(found: Plan) -> RenderableType:
    """Return the channels of a plan, with equal channels in one line."""
    groups = collections.Counter(
        (tuple(channel.order), channel.nets, channel.bandwidth) for channel in found.channels
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("channels", justify="right", no_wrap=True)
    table.add_column("GB/s", justify="right", no_wrap=True)
    if found.nodes > 1:
        table.add_column("in", no_wrap=True)
        table.add_column("out", no_wrap=True)
    table.add_column("head, others" if found.pattern == "heads" else "GPUs in order")
    for (order, nets, bandwidth), count in groups.items():
        ends = [] if nets is None else [f"net{nets[0]}", f"net{nets[1]}"]
        table.add_row(str(count), f"{bandwidth:.4g}", *ends, " ".join(map(str, order)))
    heading = Text(f"{found!r}, found in {found.seconds * 1e3:.2g} ms", style="bold")
    return Group(heading, table)


def measured(figures: list[Figure]) -> RenderableType:
    """Return the measurements as a table."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("measured", "between", "latency, us", "GB/s"):
        table.add_column(heading, justify="right" if heading in {"latency, us", "GB/s"} else "left")
    for figure in figures:
        is_link = figure.kind != "reduce"
        us = f"{figure.us:.3g}" if is_link else ""
        table.add_row(figure.kind, _ends(figure), us, f"{figure.gigabytes:.3g}")
    return table


def _ends(figure: Figure) -> str:
    one, other = figure.ends
    if figure.kind == "reduce":
        return "adding to others"
    if figure.kind == "network":
        return f"{one} and {other}"
    if figure.kind == "gpus":
        return f"{one} to {other}"
    return f"NUMA nodes {one} and {other}"


def as_json(topology: Topology, found: Plan | None, figures: list[Figure]) -> dict[str, object]:
    """Return one JSON object: warnings, paths and, if available, measurements and plan."""
    warnings = [
        {name: getattr(warning, name) for name in ("name", "subject", "message", "repair")}
        for warning in topology.warnings
    ]
    result: dict[str, object] = {
        "gpus": len(topology.gpus),
        "nets": len(topology.nets),
        "digest": topology.digest,
        "warnings": warnings,
        "paths": paths(topology),
    }
    if figures:
        result["measured"] = [dataclasses.asdict(figure) for figure in figures]
    if found is not None:
        result["plan"] = {
            "pattern": found.pattern,
            "nodes": found.nodes,
            "bandwidth": found.bandwidth,
            "bound": None if math.isinf(found.bound) else found.bound,
            "type_intra": found.type_intra,
            "type_inter": found.type_inter,
            "seconds": found.seconds,
            "optimal": found.optimal,
            "channels": [
                {"bandwidth": channel.bandwidth, "order": channel.order, "nets": channel.nets}
                for channel in found.channels
            ],
        }
    return result

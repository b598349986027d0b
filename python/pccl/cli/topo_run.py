# SPDX-License-Identifier: Apache-2.0
"""What ``pccl topo`` does."""

from __future__ import annotations

import dataclasses
import os
import sys
import typing

from rich.console import Console

from pccl import topology
from pccl._core import Communicator, net_plugin_report
from pccl._internal.whole_file import check_writable
from pccl.cli import terminal
from pccl.topology import measure, measure_hosts, report

if typing.TYPE_CHECKING:
    from pathlib import Path

_PATTERNS = ("ring", "tree", "heads")


@dataclasses.dataclass(frozen=True)
class Request:
    """Request of the command line; options that it leaves out are None.

    Raises
    ------
    ValueError
        An option would have no effect, or the options contradict each other.
    """

    load: Path | None
    example: str | None
    assume: str
    search: str | None
    nodes: int | None
    measure: bool
    meet: str | None
    rank: int | None
    ranks: int | None
    strict: bool
    as_json: bool
    xml: Path | None
    graph: Path | None
    svg: Path | None

    def __post_init__(self) -> None:
        for option, needed in (
            ("nodes", "search"),
            ("graph", "search"),
            ("meet", "measure"),
            ("rank", "meet"),
            ("ranks", "meet"),
        ):
            if getattr(self, option) is not None and not getattr(self, needed):
                raise ValueError(f"--{option} needs --{needed}")
        if self.load and self.example:
            raise ValueError("--load and --example name two machines: leave one out")
        if self.measure and (self.load or self.example):
            given = "--load" if self.load else "--example"
            raise ValueError(f"--measure is of this machine: leave {given} out")
        if self.search is not None and self.search not in _PATTERNS:
            raise ValueError(f"--search {self.search!r}: must be one of {', '.join(_PATTERNS)}")
        if self.svg and self.svg.suffix != ".svg":
            raise ValueError(f"--svg {self.svg}: pictures are SVG, so the name must end in .svg")

    def files(self) -> list[Path]:
        """Return those that are to be written."""
        return [file for file in (self.xml, self.graph, self.svg) if file]


def run(request: Request) -> None:
    """Load or detect, search, write files and print.

    Raises
    ------
    ValueError, OSError, ImportError, pccl.Error
        One line names the fault.
    """
    for file in request.files():
        check_writable(file)
    machine = _machine(request)
    measured = _measured(machine, request)
    plan = None
    if request.search is not None:
        plan = machine.search(request.search, nodes=request.nodes or 1)  # type: ignore[arg-type]
    _write_files(request, machine, plan)
    plugin = _net_plugin(request)
    if request.as_json:
        facts = report.as_json(machine, plan, measured)
        terminal.print_json({**facts, "net_plugin": plugin} if plugin else facts)
        return
    console = Console(highlight=False)
    console.print(report.machine(machine))
    for line in _net_plugin_lines(plugin):
        console.print(line, soft_wrap=True)
    if plan is not None:
        console.print()
        console.print(report.plan(plan))
    if measured:
        console.print()
        console.print(report.measured(measured))
    if request.measure:
        for line in measure.not_measured(machine, measured):
            console.print(f"not measured: {line}")
        console.print(f"kept in {measure.path(machine)}", soft_wrap=True)


def _net_plugin(request: Request) -> dict[str, typing.Any]:
    """Return the report on the net plug-in of this machine; empty where no setting names one."""
    if request.load or request.example:
        return {}
    found = net_plugin_report()
    return found if found["file"] or found["failure"] else {}


def _net_plugin_lines(plugin: dict[str, typing.Any]) -> list[str]:
    if not plugin:
        return []
    if plugin["failure"]:
        return [f"net plug-in: {plugin['failure']}"]
    lines = [f"net plug-in {plugin['name']} ({plugin['symbol']}, {plugin['file']})"]
    for device in plugin["devices"]:
        place = f", {device['pci_path']}" if device["pci_path"] else ""
        rail = f", rail {device['rail']}" if device["rail"] >= 0 else ""
        lines.append(
            f"  {device['name']}: port {device['port']}, {device['megabits'] / 1000:g} Gbit/s, "
            f"guid {device['guid']:#x}{rail}{place}"
        )
    return lines


def _assumptions(text: str) -> dict[str, int]:
    """Parse "sm=90,nvlinks=18"."""
    assumed: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        if not equals or not value.strip().isdigit():
            raise ValueError(f"--assume {item!r}: write name=number, as in sm=90")
        assumed[name.strip()] = int(value)
    return assumed


def _machine(request: Request) -> topology.Topology:
    assumed = _assumptions(request.assume)
    if request.example:
        return topology.example(request.example, assume=assumed, strict=request.strict)
    if request.load:
        return topology.load(request.load, assume=assumed, strict=request.strict)
    return topology.detect(assume=assumed, strict=request.strict)


def _measured(machine: topology.Topology, request: Request) -> list[measure.Figure]:
    """Return what was measured on this machine: now, if that is wanted, or before."""
    if request.load or request.example:
        return []
    known = measure.read(machine)
    if not request.measure:
        return known
    file = measure.path(machine)
    check_writable(file)
    found = _networks(request, request.meet) if request.meet else _links(machine)
    all_figures = measure.updated(known, found)
    measure.save(all_figures, file)
    return all_figures


def _links(machine: topology.Topology) -> list[measure.Figure]:
    pairs = measure.pairs(machine, os.sched_getaffinity(0))
    steps = len(pairs) * len(measure.KINDS)
    seconds = steps * measure.SECONDS_PER_KIND
    found = []
    with terminal.progress("pccl topo --measure", steps, seconds) as step:
        for figure in measure.figures(pairs):
            found.append(figure)
            if figure.kind in measure.KINDS:
                step()
    return [*found, *measure.gpus()]


def _networks(request: Request, meet: str) -> list[measure.Figure]:
    rank, ranks = request.rank or 0, 2 if request.ranks is None else request.ranks
    comm = Communicator(
        rank=rank,
        world_size=ranks,
        rendezvous=meet,
        timeout=measure.TIMEOUT_S,
        name="measure-networks",
    )
    found = measure_hosts.between_hosts(comm)
    hosts = topology.job(comm).hosts
    comm.barrier()
    if len(hosts) < 2:
        raise ValueError("all ranks are on one host: there is no network to measure")
    return measure_hosts.of_host(found, hosts, rank)


def _write_files(request: Request, machine: topology.Topology, plan: topology.Plan | None) -> None:
    """Write the requested files, and name them on stderr: stdout may be JSON."""
    if request.xml:
        machine.to_xml(request.xml)
    if request.graph and plan is not None:
        plan.to_xml(request.graph)
    if request.svg:
        figure = machine.plot() if plan is None else plan.plot()
        figure.savefig(request.svg, format="svg", bbox_inches="tight")
    for file in request.files():
        print(f"wrote {file}", file=sys.stderr)

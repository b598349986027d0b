"""The command ``pccl topo``, apart from its options."""

from __future__ import annotations

import dataclasses
import json
import os
import typing

from rich.console import Console

import pccl
from pccl import topology, topology_measure, topology_measure_hosts, topology_report

if typing.TYPE_CHECKING:
    from pathlib import Path

_PATTERNS = ("ring", "tree", "heads")


@dataclasses.dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    load: Path | None
    assume: str
    search: str | None
    nodes: int
    measure: bool
    meet: str
    rank: int
    ranks: int
    strict: bool
    as_json: bool
    xml: Path | None
    graph: Path | None
    svg: Path | None


def _assumptions(text: str) -> dict[str, int]:
    """Parse "sm=90,nvlinks=18"."""
    assumed: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        if not equals or not value.strip().isdigit():
            raise ValueError(f"--assume {item!r}: write name=number, as in sm=90")
        assumed[name.strip()] = int(value)
    return assumed


def _plan_of(machine: topology.Topology, request: Request) -> topology.Plan | None:
    if request.search is None:
        if request.graph:
            raise ValueError("--graph needs --search")
        return None
    if request.search not in _PATTERNS:
        raise ValueError(f"--search {request.search!r}: must be one of {', '.join(_PATTERNS)}")
    return machine.search(request.search, nodes=request.nodes)  # type: ignore[arg-type]


def _measured(machine: topology.Topology, request: Request) -> list[topology_measure.Figure]:
    """Return what was measured on this machine: now, if that is wanted, or before."""
    if request.load:
        if request.measure:
            raise ValueError("--measure is of this machine: leave --load out")
        return []
    if not request.measure:
        return topology_measure.read(machine)
    known = topology_measure.read(machine)
    if request.meet:
        found = _networks(request)
    else:
        pairs = topology_measure.pairs(machine, os.sched_getaffinity(0))
        found = [*topology_measure.figures(pairs), *topology_measure.gpus()]
    all_figures = topology_measure.updated(known, found)
    topology_measure.save(all_figures, topology_measure.path(machine))
    return all_figures


def _networks(request: Request) -> list[topology_measure.Figure]:
    comm = pccl.Communicator(
        rank=request.rank,
        world_size=request.ranks,
        rendezvous=request.meet,
        timeout=topology_measure.TIMEOUT_S,
        name="measure-networks",
    )
    found = topology_measure_hosts.between_hosts(comm)
    hosts = topology.job(comm).hosts
    comm.barrier()
    if len(hosts) < 2:
        raise ValueError("all ranks that met are on one host: there is no network to measure")
    return topology_measure_hosts.of_host(found, hosts, request.rank)


def run(request: Request) -> None:
    """Load or detect, search, write files and print.

    Raises
    ------
    ValueError, OSError, ImportError, pccl.Error
        One line says what is wrong.
    """
    if request.meet and not request.measure:
        raise ValueError("--meet needs --measure")
    assumed = _assumptions(request.assume)
    machine = (
        topology.load(request.load, assume=assumed, strict=request.strict)
        if request.load
        else topology.detect(assume=assumed, strict=request.strict)
    )
    measured = _measured(machine, request)
    plan = _plan_of(machine, request)
    if request.xml:
        machine.to_xml(request.xml)
    if request.graph and plan is not None:
        plan.to_xml(request.graph)
    if request.svg:
        figure = machine.plot() if plan is None else plan.plot()
        figure.savefig(request.svg, format="svg", bbox_inches="tight")
    if request.as_json:
        print(json.dumps(topology_report.as_json(machine, plan, measured)))
        return
    console = Console(highlight=False)
    console.print(topology_report.machine(machine))
    if plan is not None:
        console.print()
        console.print(topology_report.plan(plan))
    if measured:
        console.print()
        console.print(topology_report.measured(measured))
    if request.measure:
        for line in topology_measure.not_measured(machine, measured):
            console.print(f"not measured: {line}")
        console.print(f"kept in {topology_measure.path(machine)}", soft_wrap=True)

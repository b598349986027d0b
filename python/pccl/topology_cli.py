"""The command ``pccl topo``, apart from its options."""

from __future__ import annotations

import dataclasses
import json
import typing

from rich.console import Console

from pccl import topology, topology_report

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


def run(request: Request) -> None:
    """Load or detect, search, write files and print.

    Raises
    ------
    ValueError, OSError, ImportError, pccl.Error
        One line says what is wrong.
    """
    assumed = _assumptions(request.assume)
    machine = (
        topology.load(request.load, assume=assumed, strict=request.strict)
        if request.load
        else topology.detect(assume=assumed, strict=request.strict)
    )
    plan = _plan_of(machine, request)
    if request.xml:
        machine.to_xml(request.xml)
    if request.graph and plan is not None:
        plan.to_xml(request.graph)
    if request.svg:
        figure = machine.plot() if plan is None else plan.plot()
        figure.savefig(request.svg, format="svg", bbox_inches="tight")
    if request.as_json:
        print(json.dumps(topology_report.as_json(machine, plan)))
        return
    console = Console(highlight=False)
    console.print(topology_report.machine(machine))
    if plan is not None:
        console.print()
        console.print(topology_report.plan(plan))

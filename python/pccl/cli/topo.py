# SPDX-License-Identifier: Apache-2.0
"""``pccl topo``: its options. ``pccl.cli.topo_run`` runs it."""

from pathlib import Path
from typing import Annotated

import typer

from pccl.cli import terminal

EXAMPLES = terminal.examples(
    "pccl topo                             # this machine",
    "pccl topo --example dgx1v --search ring --svg rings.svg",
    "pccl topo --example p4d --assume sm=80,nvlinks=12 --search tree --nodes 2",
    "pccl topo --measure                   # times links; later groups count on it",
)


def topo(
    load: Annotated[
        Path | None, typer.Option(help="Topology XML of NCCL or hwloc, instead of this machine.")
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(
            help="A machine that comes with pccl: dgx1v, dgx2, gb200, h200_vm, l40s, p4d."
        ),
    ] = None,
    assume: Annotated[
        str, typer.Option(help="For unknown properties: sm=90,nvlinks=18,net_speed=400000,p2p=0.")
    ] = "",
    search: Annotated[
        str | None, typer.Option(help="Channels to look for: ring, tree or heads.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="With --search: equal machines in the job.  [default: 1]")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time links between cores; groups count on it.")
    ] = False,
    meet: Annotated[
        str | None,
        typer.Option(
            help="With --measure: time networks instead; the rendezvous of the ranks of all hosts"
            ", as in tcp://host:port (rank 0 listens)."
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="With --meet: this process.  [default: 0]")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="With --meet: processes on all hosts.  [default: 2]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    xml: Annotated[Path | None, typer.Option(help="File for the topology, in NCCL's XML.")] = None,
    graph: Annotated[
        Path | None, typer.Option(help="With --search: file for the plan, in NCCL's XML.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="File for a picture: of the plan, if any.")
    ] = None,
) -> None:
    """Show a machine, its faults, and its best channels.

    Bandwidths are in 10^9 bytes a second, one way. docs/reference/topology.md explains types of
    paths and warnings.
    """
    from pccl.cli import topo_run  # not above: it needs the extension module

    topo_run.run(
        topo_run.Request(
            load=load,
            example=example,
            assume=assume,
            search=search,
            nodes=nodes,
            measure=measure,
            meet=meet,
            rank=rank,
            ranks=ranks,
            strict=strict,
            as_json=as_json,
            xml=xml,
            graph=graph,
            svg=svg,
        )
    )

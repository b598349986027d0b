# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor``."""

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from pccl.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pccl.diagnostics.rdma_channel import PeerChannel
    from pccl.diagnostics.rdma_doctor import ExaminedStep

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = terminal.examples("pccl doctor --rdma", "pccl doctor --rdma --peer node7:4711")
_MOST_PORT = 65535


def doctor(
    rdma: Annotated[bool, typer.Option("--rdma", help="Examine RDMA.")] = False,
    peer: Annotated[str, typer.Option(help="HOST:PORT at which another host listens.")] = "",
    listen: Annotated[
        int | None,
        typer.Option(min=0, max=_MOST_PORT, help="TCP port at which to wait for another host."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for the other host, and for each write.")
    ] = 20.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of lines.")
    ] = False,
) -> None:
    """Examine RDMA, step by step until one fails.

    The line of that step names the setting to change. To examine the way between two hosts, run the
    command with --listen PORT on one of them and with --peer HOST:PORT on the other; both should
    have the same PCCL_SECRET_FILE. The exit code is 1 if a step failed.
    """
    if not rdma:
        raise typer.BadParameter("there is one examination: pass --rdma")
    if peer and listen is not None:
        raise typer.BadParameter("--peer and --listen are for different hosts: pass one of them")
    from pccl.diagnostics import rdma_doctor

    meet = _meeting(peer, listen, timeout)
    steps = rdma_doctor.examine(meet, timeout, (lambda _: None) if as_json else _show)
    is_healthy = all(step.outcome != "failed" for step in steps)
    if as_json:
        terminal.print_json(
            {"healthy": is_healthy, "steps": [dataclasses.asdict(step) for step in steps]}
        )
    if not is_healthy:
        raise typer.Exit(1)


def _meeting(
    peer: str, port: int | None, timeout: float
) -> "Callable[[bytes | None], PeerChannel] | None":
    from pccl.diagnostics import rdma_channel

    if peer:
        rdma_channel.split_address(peer)
        return lambda secret: rdma_channel.connect(peer, secret, timeout)
    if port is not None:
        return lambda secret: rdma_channel.listen(port, secret, timeout, _invite)
    return None


def _invite(port: int) -> None:
    print(f"pccl: waiting for `pccl doctor --rdma --peer THIS_HOST:{port}`", file=sys.stderr)


def _show(step: "ExaminedStep") -> None:
    print(f"{step.name:<10}  {step.outcome:<7}  {step.text}", flush=True)

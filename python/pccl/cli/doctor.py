# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor``."""

import dataclasses
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from pccl.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pccl.diagnostics.doctor.finding import Finding
    from pccl.diagnostics.doctor.job.report import Report
    from pccl.diagnostics.rdma_channel import PeerChannel
    from pccl.diagnostics.rdma_doctor import ExaminedStep

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = terminal.examples(
    "pccl doctor                         # this host",
    "pccl run -n 2 -m pccl doctor        # a job: its ranks, hosts and paths",
    "pccl doctor --rdma --peer node7:4711",
)
_MOST_PORT = 65535
_RDMA_TIMEOUT_S = 20.0
_JOB_TIMEOUT_S = 60.0


def doctor(
    rdma: Annotated[bool, typer.Option("--rdma", help="Examine RDMA alone.")] = False,
    peer: Annotated[
        str, typer.Option(help="With --rdma: HOST:PORT at which another host listens.")
    ] = "",
    listen: Annotated[
        int | None,
        typer.Option(
            min=0, max=_MOST_PORT, help="With --rdma: TCP port at which to wait for another host."
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds to wait for the other ranks of a job (60); with --rdma, for the other"
            " host and each write (20).",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=0, help="Hosts of a job with which each is examined; 0: all.", show_default=False
        ),
    ] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings count as errors.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of lines.")
    ] = False,
    as_prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print metrics in Prometheus' text format.")
    ] = False,
) -> None:
    """Examine this host or a job: faults and settings.

    Each finding is one line, which names the fault and the setting to change. Started by a launcher
    (torchrun, pccl run), it examines the hosts of the job and the paths between them, and rank 0
    prints the report. With --rdma it examines RDMA, step by step until one fails. To examine the
    way between two hosts, run it with --listen PORT on one of them and with --peer HOST:PORT on the
    other; both should have the same PCCL_SECRET_FILE. The exit code is 0 without errors, 1 with
    errors, and 2 for wrong use.
    """
    if as_json and as_prometheus:
        raise typer.BadParameter("--json and --prometheus are two forms: pass one of them")
    if not rdma and (peer or listen is not None):
        raise typer.BadParameter("--peer and --listen examine RDMA: pass --rdma, too")
    if rdma:
        if as_prometheus:
            raise typer.BadParameter("--rdma has no --prometheus: pass --json")
        _examine_rdma(peer, listen, _RDMA_TIMEOUT_S if timeout is None else timeout, as_json)
        return
    found = _examine(_JOB_TIMEOUT_S if timeout is None else timeout, rounds)
    if isinstance(found, int):
        raise typer.Exit(found)
    _print_report(found, as_json=as_json, as_prometheus=as_prometheus)
    if found.status or (strict and found.findings):
        raise typer.Exit(1)


def _examine(timeout: float, rounds: int) -> "Report | int":
    from pccl.diagnostics.doctor.job import examination, meeting
    from pccl.diagnostics.doctor.job.options import Options
    from pccl.diagnostics.doctor.root import Root
    from pccl.errors import TimeoutError, UnavailableError

    if not meeting.is_in_job():
        return _examine_host([])
    try:
        met = meeting.meet(timeout)
    except (TimeoutError, UnavailableError) as failure:
        return _examine_host([meeting.failed(failure)])
    options = Options(timeout_s=timeout, rounds=rounds)
    return examination.examine(met, Root(), options)


def _examine_host(failures: "list[Finding]") -> "Report":
    from pccl.diagnostics.doctor.host import versions
    from pccl.diagnostics.doctor.host.examination import of_host
    from pccl.diagnostics.doctor.job.report import Report, merged
    from pccl.diagnostics.doctor.root import Root

    begun = time.monotonic()
    root = Root()
    found = [*failures, *of_host(root)]
    known = dataclasses.asdict(versions.read(root))
    return Report(merged(found, []), seconds=time.monotonic() - begun, versions=known)


def _print_report(report: "Report", *, as_json: bool, as_prometheus: bool) -> None:
    from pccl.diagnostics.doctor.job import metrics, show

    if as_json:
        terminal.print_json(report.as_json())
    elif as_prometheus:
        print(metrics.prometheus(report), end="")
    else:
        for line in show.text(report):
            print(terminal.printable(line))


def _examine_rdma(peer: str, listen: int | None, timeout: float, as_json: bool) -> None:
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

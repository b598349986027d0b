# SPDX-License-Identifier: Apache-2.0
"""``pccl status``."""

import dataclasses
import socket
import textwrap
from typing import Annotated

import typer

from pccl.cli import terminal
from pccl.diagnostics import exporter, job_status, process_addresses, prometheus

EXAMPLES = terminal.examples(
    "pccl status 4711                 # a process, or the torchrun that started it",
    "pccl status 10.0.0.1:40123       # where one listens, on any host",
    "pccl status 4711 --json",
    "pccl status 4711 --prometheus    # counters for a monitoring system",
    "pccl status 4711 --serve 9400    # the same by HTTP, for Prometheus to scrape",
)

# Arguments of all commands that query a running job.
Target = Annotated[
    str,
    typer.Argument(
        metavar="PID|ADDRESS",
        help="A process of the job, one that has started such, or where one listens.",
    ),
]
AnswerSeconds = Annotated[
    float, typer.Option(min=0.1, max=60, help="Seconds that each process has to answer.")
]


def status(
    target: Target,
    timeout: AnswerSeconds = 3.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
    as_prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print counters in Prometheus' text format.")
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve these counters by HTTP at /metrics until Ctrl-C, on 127.0.0.1.",
        ),
    ] = None,
) -> None:
    """Show which rank of a running job waits for which, and where.

    The process that is named leads to all others that are in a group with it. They answer while
    their Python hangs. Where the job has a PCCL_SECRET_FILE, so must the caller; a job without one
    answers its own user alone, on its own host.
    """
    if as_json + as_prometheus + (serve is not None) > 1:
        raise ValueError("--json, --prometheus and --serve exclude each other")
    if serve is not None:
        _serve(target, timeout, serve)
        return
    job = job_status.query_job(processes_at(target), timeout)
    job.require_answer()
    if as_prometheus:
        typer.echo(prometheus.exposition(job), nl=False)
    elif as_json:
        terminal.print_json(_as_json(job))
    else:
        _print(job)


def _serve(target: str, timeout: float, address: str) -> None:
    def query() -> job_status.Job:
        return job_status.query_job(processes_at(target), timeout)

    with exporter.Exporter(exporter.address_of(address), query) as server:
        server.metrics()  # a job that does not answer is an error at once
        host, port = server.server_address[:2]
        print(f"serving http://{host!s}:{port}/metrics", flush=True)
        server.serve_forever()


def processes_at(target: str) -> list[tuple[str, ...]]:
    """Return the addresses of each process that a process id, or an address, leads to.

    Raises
    ------
    ValueError
        No process of it listens, or the address has no meaning.
    """
    if not target.isdecimal():
        return [_resolved(target.removeprefix("tcp://"))]
    family = process_addresses.family_of(int(target))
    processes = [doors for pid in family if (doors := tuple(_doors_of(pid, int(target))))]
    if processes:
        return processes
    raise ValueError(
        f"neither process {target} nor any that it has started has a pccl group: none of"
        f" {len(family)} listens for others"
    )


def _doors_of(pid: int, requested: int) -> list[str]:
    try:
        return process_addresses.doors_of(pid)
    except FileNotFoundError:  # it has ended meanwhile
        return []
    except PermissionError:
        if pid != requested:
            return []
        raise ValueError(
            f"the kernel does not let this user look at process {pid}: run this as the user of"
            " that process"
        ) from None


def _resolved(address: str) -> tuple[str, ...]:
    host, colon, port = address.rpartition(":")
    if address.startswith(("unix:", "[")):
        return (address,)
    if not colon or not port.isdecimal():
        raise ValueError(
            f"'{address}' is neither a process id nor an address such as 10.0.0.1:40123"
        )
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, OverflowError) as error:
        raise ValueError(f"'{address}' has no address: {error}") from None
    names = [
        f"[{name[0]}]:{port}" if family == socket.AF_INET6 else f"{name[0]}:{port}"
        for family, _, _, _, name in found
    ]
    return tuple(dict.fromkeys(names))


def _as_json(job: job_status.Job) -> dict[str, object]:
    return {
        "processes": [
            {
                "host": process.host,
                "pid": process.pid,
                "door": process.door,
                "groups": [dataclasses.asdict(seat) for seat in process.seats],
            }
            for process in job.processes
        ],
        "unheard": [dataclasses.asdict(process) for process in job.unheard],
        "explained": job.explain(),
    }


def _print(job: job_status.Job) -> None:
    for paragraph in map(terminal.printable, job.explain()):
        print(textwrap.fill(paragraph, width=terminal.width(), subsequent_indent="  "))
    if not any(process.seats for process in job.processes):
        print("No process is in a group.")
        return
    print()
    for group in job.groups():
        _print_group(group)
    for silent in job.unheard:
        print(terminal.printable(f"{silent.name} does not answer: {silent.reason}"))


def _print_group(seats: list[tuple[job_status.Seat, job_status.Process]]) -> None:
    rows = [("rank", "process", "is in", "for", "waits for")]
    rows += [
        (
            str(seat.rank),
            f"{process.pid} on {process.host}",
            _is_in(seat),
            "-" if seat.seconds is None else f"{seat.seconds:.1f} s",
            ", ".join(map(str, seat.awaited)) or "-",
        )
        for seat, process in seats
    ]
    cells = [[terminal.printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    first = seats[0][0]
    place = "GPUs" if first.device == "cuda" else "host memory"
    print(f"group {terminal.printable(first.group)}, {place}")
    for row in cells:
        print("  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())
    for seat, _ in seats:
        if seat.broken:
            print(terminal.printable(f"rank {seat.rank} has left the group: {seat.broken}"))
    print()


def _is_in(seat: job_status.Seat) -> str:
    if seat.operation:
        return seat.operation.partition(" (")[0]
    return f"nothing since {seat.last.partition(' (')[0]}" if seat.last else "nothing yet"

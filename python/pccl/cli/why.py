# SPDX-License-Identifier: Apache-2.0
"""``pccl why``."""

import dataclasses
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pccl._internal import given_file
from pccl._internal.whole_file import write_whole
from pccl.cli import status, terminal
from pccl.diagnostics import causes, job_status, verdicts
from pccl.diagnostics.ledger import Ledger, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EXAMPLES = terminal.examples(
    "pccl why 4711                    # a process, or the torchrun that started it",
    "pccl why 10.0.0.1:40123 --seconds 10",
    "pccl why 4711 --save a.json      # keeps the history of its counters",
    "pccl why a.json b.json           # of several ranks, jobs or runs",
    "pccl why 4711 --json",
)

_MOST_BYTES = 1 << 30  # of a file
_HEAD = ("rank", "process", "between", "within", "predicted", "waiting", "mostly for")


def why(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="PID|ADDRESS|FILE...",
            help="A process of a job, one that has started such, where one listens, or a file of"
            " --save.",
        ),
    ],
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Time over which the job is looked at.")
    ] = 5.0,
    timeout: status.AnswerSeconds = 3.0,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the merged history to this file, as JSON."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
    as_prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print causes in Prometheus' text format.")
    ] = False,
) -> None:
    """Show who or what a slow job waits for, since when.

    All processes are queried a few times, and the counters of their collectives are compared.
    Processes also keep a history of these counters, whose windows show when a cause began. For a
    job that hangs, see pccl status.
    """
    if as_json and as_prometheus:
        raise ValueError("--json and --prometheus exclude each other")
    files = [target for target in targets if Path(target).is_file()]
    processes = [each for t in targets if t not in files for each in status.processes_at(t)]
    ledgers = [Ledger.of_text(given_file.text_of(name, _MOST_BYTES), name) for name in files]
    looks: list[job_status.Job] = []
    if processes:
        looks = causes.looks(job_status.RepeatedQuery(processes, timeout), seconds)
        looks[0].require_answer()
        ledgers.append(job_status.query_ledger(looks[-1], timeout))
    ledger = merged(ledgers)
    if save is not None:
        write_whole(save, ledger.text())
    found = verdicts.verdicts_of(looks, ledger)
    if as_prometheus:
        typer.echo(verdicts.exposition(found), nl=False)
    elif as_json:
        terminal.print_json({"groups": [_as_json(verdict) for verdict in found]})
    else:
        _print_all(found, looks, f"{seconds:g}", " ".join(targets))


def _print_all(
    found: list[verdicts.Verdict], looks: list[job_status.Job], seconds: str, target: str
) -> None:
    for verdict in found:
        _print(verdict)
    if not found and looks:
        print(
            f"No operation on host memory ended within {seconds} s; pccl status {target} shows"
            " where the ranks are."
        )
    elif not found:
        print("The files contain no collectives.")
    for silent in looks[-1].unheard if looks else ():
        print(terminal.printable(f"{silent.name} does not answer: {silent.reason}"))


def _as_json(verdict: verdicts.Verdict) -> dict[str, object]:
    now = verdict.now
    return {
        "group": verdict.group,
        "size": verdict.size,
        "seconds": now.seconds if now else 0.0,
        "ranks": [
            dataclasses.asdict(rank) | {"within_s": rank.usage.within_s, "own_s": rank.own_s}
            for rank in (now.ranks if now else ())
        ],
        "causes": [dataclasses.asdict(e.cause) for e in verdict.episodes if e.is_seen],
        "episodes": [dataclasses.asdict(episode) for episode in verdict.episodes],
    }


def _print(verdict: verdicts.Verdict) -> None:
    now = verdict.now
    count = f": {_counts(now)}" if now else f" of {verdict.size} ranks"
    print(terminal.printable(f"group {verdict.group}{count}"))
    if now:
        _print_ranks([rank for rank in now.ranks if rank.usage.calls])
        _print_messages(rank for rank in now.ranks if rank.usage.messages.calls)
    for episode in verdict.episodes:
        cause, since = episode.cause, verdicts.since_text(episode)
        when = f"{since}, " if since else ""
        text = terminal.printable(f"{when}{cause.part:.0%} of the time: {cause.text}.")
        print(textwrap.fill(text, width=terminal.width(), subsequent_indent="  "))
    if not verdict.episodes:
        print(f"No rank and no path costs the others {causes.LEAST_PART:.0%} of the time.")
    print()


def _counts(group: causes.GroupTime) -> str:
    messages = sum(rank.usage.messages.received.calls for rank in group.ranks)
    return f"{group.calls} collectives" + (f", {messages} messages" if messages else "")


def _print_messages(ranks: "Iterable[causes.RankTime]") -> None:
    for rank in ranks:
        messages = rank.usage.messages
        text = (
            f"rank {rank.rank} sent {messages.sent.calls} messages of {messages.sent.bytes} bytes"
            f" and received {messages.received.calls} of {messages.received.bytes}"
        )
        waited = [f"{w.seconds:.1f} s for rank {w.rank} to {w.act}" for w in messages.waits[:1]]
        print("; it waited ".join([text, *waited]))


def _print_ranks(ranks: "Sequence[causes.RankTime]") -> None:
    if not ranks:
        return
    rows = [_HEAD, *map(_row, ranks)]
    cells = [[terminal.printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())


def _row(rank: causes.RankTime) -> tuple[str, ...]:
    usage = rank.usage
    total = usage.total_s or 1.0
    longest = usage.waits[0] if usage.waits and usage.waits[0].seconds > 0 else None
    return (
        str(rank.rank),
        f"{rank.pid} on {rank.host}",
        f"{usage.between_s / total:.0%}",
        f"{usage.within_s / total:.0%}",
        f"{usage.predicted_s / total:.0%}",
        f"{usage.waited_s / total:.0%}",
        f"rank {longest.rank} to {longest.act}" if longest else "-",
    )

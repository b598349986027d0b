# SPDX-License-Identifier: Apache-2.0
"""``pccl why``."""

import dataclasses
import textwrap
from typing import Annotated

import typer

from pccl.cli import status, terminal
from pccl.diagnostics import causes, job_status

EXAMPLES = terminal.examples(
    "pccl why 4711                    # a process, or the torchrun that started it",
    "pccl why 10.0.0.1:40123 --seconds 10",
    "pccl why 4711 --json",
)


_HEAD = ("rank", "process", "between", "within", "predicted", "waiting", "mostly for")


def why(
    target: status.Target,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Time over which the job is looked at.")
    ] = 5.0,
    timeout: status.AnswerSeconds = 3.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
) -> None:
    """Show which rank, core or path a slow job waits for.

    All processes are queried a few times, and the counters of their collectives are compared. For a
    job that hangs, see pccl status.
    """
    processes = status.processes_at(target)
    looks = causes.looks(lambda: job_status.query_job(processes, timeout), seconds)
    looks[0].require_answer()
    groups = causes.group_times(looks)
    if as_json:
        terminal.print_json({"groups": [_as_json(group) for group in groups]})
        return
    for group in groups:
        _print(group)
    if not groups:
        print(
            f"No collective on host memory ended within {seconds:g} s; pccl status {target} shows"
            " where the ranks are."
        )
    for silent in looks[-1].unheard:
        print(terminal.printable(f"{silent.name} does not answer: {silent.reason}"))


def _as_json(group: causes.GroupTime) -> dict[str, object]:
    return {
        "group": group.group,
        "size": group.size,
        "seconds": group.seconds,
        "ranks": [
            dataclasses.asdict(rank) | {"within_s": rank.usage.within_s, "own_s": rank.own_s}
            for rank in group.ranks
        ],
        "causes": [dataclasses.asdict(cause) for cause in causes.causes_of(group)],
    }


def _print(group: causes.GroupTime) -> None:
    print(terminal.printable(f"group {group.group}: {group.calls} collectives"))
    rows = [_HEAD, *map(_row, group.ranks)]
    cells = [[terminal.printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())
    found = causes.causes_of(group)
    for cause in found:
        text = terminal.printable(f"{cause.part:.0%} of the time: {cause.text}.")
        print(textwrap.fill(text, width=terminal.width(), subsequent_indent="  "))
    if not found:
        print(f"No rank and no path costs the others {causes.LEAST_PART:.0%} of the time.")
    print()


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

# SPDX-License-Identifier: Apache-2.0
"""``pccl phase``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pccl.cli import terminal

if TYPE_CHECKING:
    from pccl.phases.cluster import Cluster

EXAMPLES = terminal.examples(
    "pccl phase list cluster.json",
    "pccl phase plan cluster.json ring pairs",
    "pccl phase switch cluster.json pairs --dry-run    # have switches check it",
)

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Look at the phases of a cluster, and switch between them.\n\nOne process does so at a "
    "time. Collectives that are under way are not waited for.",
    epilog=EXAMPLES,
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file: YAML, or .json.")]
_Phase = Annotated[str, typer.Argument(metavar="PHASE", help="A phase of the file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
_Timeout = Annotated[float, typer.Option(help="Of each step on all switches, seconds.")]


def _load(file: Path) -> "Cluster":
    from pccl.phases.cluster import Cluster  # not above: it needs the extension module

    return Cluster.load(file)


@app.command("list", epilog=terminal.examples("pccl phase list cluster.json"))
def list_phases(file: _File, as_json: _Json = False) -> None:
    """List the phases of a file, and their links."""
    phases = _load(file).phases
    if as_json:
        terminal.print_json({"phases": phases})
        return
    for name, links in phases.items():
        print(f"{name}: " + (", ".join(f"{a}->{b}" for a, b in links) or "no links"))


@app.command(
    "plan",
    epilog=terminal.examples(
        "pccl phase plan cluster.json ring pairs",
        "pccl phase plan cluster.json ring pairs --xml",
    ),
)
def plan(
    file: _File,
    source: Annotated[str, typer.Argument(metavar="FROM", help="A phase of the file.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Another one.")],
    xml: Annotated[
        bool, typer.Option("--xml", help="Show the requests for the switches, too.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Show the changes between two phases; no switch is contacted."""
    import dataclasses

    found = _load(file).plan(source, target)
    if as_json:
        terminal.print_json(dataclasses.asdict(found))
        return
    print(found)
    for each in found.switches if xml else []:
        print(f"\n{each.name}:\n{each.xml or '(in this process: nothing is sent)'}")


@app.command(
    "switch",
    epilog=terminal.examples(
        "pccl phase switch cluster.json pairs --dry-run    # have switches check it",
        "pccl phase switch cluster.json pairs",
    ),
)
def switch(
    file: _File,
    phase: _Phase,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only have the switches check it.")
    ] = False,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt", help="Overwrite the present circuits of the switches, whatever they are."
        ),
    ] = False,
    discard_candidate: Annotated[
        bool,
        typer.Option(
            "--discard-candidate",
            help="Discard edits of others in candidates, and show them.",
        ),
    ] = False,
    timeout: _Timeout = 5.0,
    as_json: _Json = False,
) -> None:
    """Switch all devices to a phase, or none. Ctrl-C rolls back.

    Exits with status 2 where it is done, but could not be written into the audit log.
    """
    import dataclasses

    cluster = _load(file)
    result = cluster.switch(
        phase,
        dry_run=dry_run,
        adopt=adopt,
        discard_candidate=discard_candidate,
        timeout=timeout,
    )
    if as_json:
        terminal.print_json(dataclasses.asdict(result))
    else:
        print(f"{phase}: {result.outcome}, {result.total_ms:.1f} ms, dark {result.dark_ms:.1f} ms")
        for each in result.switches:
            print(f"  {each.name}: " + ", ".join(f"{step} {ms:.1f} ms" for step, ms in each.steps))
            if each.discarded:
                print(f"  {each.name}: threw away of its candidate: {each.discarded}")
            if each.startup:
                print(f"  {each.name}: startup: {each.startup}")
        _warn_of_empty_fabric(cluster)
    if result.unrecorded:
        terminal.complain(result.unrecorded)
        raise typer.Exit(2)


@app.command("show", epilog=terminal.examples("pccl phase show cluster.json --json"))
def show(file: _File, timeout: _Timeout = 5.0, as_json: _Json = False) -> None:
    """Read what every switch has connected, and which phase that is."""
    cluster = _load(file)
    sights = cluster.show(timeout=timeout)
    phase = cluster.phase_shown(timeout=timeout)
    if as_json:
        terminal.print_json({"phase": phase, "switches": sights.rows})
    else:
        for row in sights.rows:
            unlit = f"; no light comes in at {row['dark']}" if row["dark"] else ""
            print(f"{row['switch']}: {row['fault'] or row['circuits']}{unlit}")
        is_known = not any(each.fault for each in sights)
        print(f"phase: {phase or ('none of the file' if is_known else 'not known')}")
        _warn_of_empty_fabric(cluster)
    if any(each.fault for each in sights):
        raise typer.Exit(2)


def _warn_of_empty_fabric(cluster: "Cluster") -> None:
    if not cluster.has_addresses:
        typer.echo(
            "no switch of the file has an address: its fabric is in this process, and the next"
            " command begins with an empty one",
            err=True,
        )


@app.command("watch", epilog=terminal.examples("pccl phase watch cluster.json ring --looks 1"))
def watch(
    file: _File,
    phase: Annotated[
        str | None,
        typer.Argument(
            metavar="PHASE", help="The expected phase.  [default: the first that is read]"
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(help="Between two looks, seconds; of switches with an address at least 2."),
    ] = 1.0,
    looks: Annotated[
        int | None,
        typer.Option(min=1, help="End after this number of changes.  [default: at Ctrl-C]"),
    ] = None,
    timeout: _Timeout = 5.0,
) -> None:
    """Print what differs from a phase, and each change.

    Exits with status 2 where some switch is not as meant in the end.
    """
    import itertools
    import time

    drifts = None
    for drifts in itertools.islice(
        _load(file).watch(phase, interval=interval, timeout=timeout), looks
    ):
        for each in drifts:
            print(f"{time.strftime('%H:%M:%S')} {each}", flush=True)
    if drifts and not all(each.is_as_meant for each in drifts):
        raise typer.Exit(2)


@app.command("measure", epilog=terminal.examples("pccl phase measure cluster.json ring pairs"))
def measure(
    file: _File,
    first: Annotated[str, typer.Argument(metavar="PHASE", help="A phase of the file.")],
    second: Annotated[str, typer.Argument(metavar="PHASE", help="Another one.")],
    rounds: Annotated[int, typer.Option(help="How often the second is switched to.")] = 5,
    timeout: _Timeout = 5.0,
    as_json: _Json = False,
) -> None:
    """Print how long switching back and forth takes.

    No job may be on the cluster, which ends in the second phase.
    """
    import dataclasses

    measured = _load(file).measure(first, second, rounds=rounds, timeout=timeout)
    if as_json:
        terminal.print_json(dataclasses.asdict(measured))
    else:
        print(measured)


@app.command(
    "audit", epilog=terminal.examples("pccl phase audit /var/log/pccl/audit.jsonl --last 50")
)
def audit(
    file: Annotated[Path, typer.Argument(metavar="LOG", help="An audit log.")],
    last: Annotated[int, typer.Option(min=1, help="How many events, of the latest.")] = 20,
) -> None:
    """Print the latest events of an audit log, one on each line.

    Exits with status 2 where a line is no event, as one that was cut short; it is shown.
    """
    import collections
    import io

    from pccl._internal import given_file

    with io.TextIOWrapper(given_file.opened(file), encoding="utf-8", errors="replace") as lines:
        latest = collections.deque(lines, maxlen=last)
    is_whole = True
    for line in latest:
        event = _event_in(line)
        is_whole = is_whole and event is not None
        print(f"no event: {line[:200]!a}" if event is None else _reported(event))
    if not is_whole:
        raise typer.Exit(2)


def _event_in(line: str) -> "dict[str, Any] | None":
    """Return what a line of an audit log holds; None: no event."""
    import json

    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(event, dict) and {"time", "user", "event"} <= event.keys()
    return event if is_event else None


def _reported(event: "dict[str, Any]") -> str:
    words = [event["time"], f"user {event['user']}", event["event"]]
    words += [f"{key} {event[key]}" for key in ("from", "to", "phase", "outcome") if key in event]
    return ", ".join(map(str, words)) + (f": {event['reason']}" if event.get("reason") else "")

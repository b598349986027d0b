"""``pccl debug``."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from pccl import flight, flight_files
from pccl.cli import terminal

EXAMPLES = terminal.examples(
    "pccl debug flight                 # the folder that PCCL_FLIGHT_DIR named",
    "pccl debug flight/*.json --json",
)


def debug(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Flight records, one of each process; or their folder."
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
) -> None:
    """Say which rank is behind in what, when a job hangs or failed.

    And what sessions wait for. Processes write flight records to the folder PCCL_FLIGHT_DIR when an
    operation fails, and on SIGUSR1.
    """
    files = [file for path in paths for file in flight_files.find(path)]
    loaded = [flight_files.load(file) for file in files]
    groups = flight.explain(record for each in loaded for record in each.groups)
    sessions = flight.explain_sessions(record for each in loaded for record in each.sessions)
    if as_json:
        names = [*map(str, files)]
        terminal.print_json({"files": names, "groups": groups, "sessions": sessions})
        return
    for paragraph in [*groups, *sessions]:
        print(textwrap.fill(paragraph, width=terminal.width(), subsequent_indent="  "))

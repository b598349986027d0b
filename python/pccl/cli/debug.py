# SPDX-License-Identifier: Apache-2.0
"""``pccl debug``."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from pccl.cli import terminal
from pccl.diagnostics import chakra, flight, flight_files

EXAMPLES = terminal.examples(
    "pccl debug flight                 # the folder that PCCL_FLIGHT_DIR named",
    "pccl debug flight/*.json --json",
    "pccl debug flight --chakra traces    # traces/chakra.0.et and so on",
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
    chakra_folder: Annotated[
        Path | None,
        typer.Option(
            "--chakra",
            metavar="FOLDER",
            help="Write execution traces of Chakra there, one for each rank; print nothing else.",
        ),
    ] = None,
) -> None:
    """Show which rank of a hung or failed job is behind, and where.

    And what sessions wait for. Processes write flight records to the folder PCCL_FLIGHT_DIR when an
    operation fails, and on SIGUSR1.
    """
    files = [file for path in paths for file in flight_files.find(path)]
    if chakra_folder is not None:
        for written in chakra.write(map(flight_files.load_raw, files), chakra_folder):
            print(written)
        return
    loaded = [flight_files.load(file) for file in files]
    groups = flight.explain(record for each in loaded for record in each.groups)
    sessions = flight.explain_sessions(record for each in loaded for record in each.sessions)
    if as_json:
        names = [*map(str, files)]
        terminal.print_json({"files": names, "groups": groups, "sessions": sessions})
        return
    for paragraph in map(terminal.printable, [*groups, *sessions]):
        print(textwrap.fill(paragraph, width=terminal.width(), subsequent_indent="  "))

# SPDX-License-Identifier: Apache-2.0
"""Options that all benchmarks have, tables, and the files in benchmarks/results."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from pccl.bench import bytes_of
from pccl.bench.cases import COLLECTIVES

from .cells import SIZES, Cell, merge_runs, summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from .launch import Findings

RESULTS = Path(__file__).resolve().parents[1] / "results"
NOT_IN_A_NAME = r"\(R\)|\(TM\)|\b(AMD|Intel|CPU|Processor|\d+-Core)\b|@.*"


def make_parser(description: str, ranks: list[int], seconds: float) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks have; ``seconds`` is the default turn."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    add = parser.add_argument
    add("--ranks", type=int, nargs="+", default=ranks)
    add("--runs", type=int, default=1, help="figures are medians over so many runs")
    add("--rounds", type=int, default=3, help="turns of each library in a cell")
    add("--seconds", type=float, default=seconds, help="length of a turn")
    add("--least", type=int, default=5, help="calls in a turn, at least")
    add("--most", type=int, default=300, help="calls in a turn, at most")
    add("--no-pin", dest="pin", action="store_false", help="do not bind rank i to core i mod cores")
    add("--json", type=Path, help="default: benchmarks/results/<date>-<name>-<machine>.json")
    return parser


def add_cells(parser: argparse.ArgumentParser, sizes: list[int] = SIZES) -> None:
    """Add the options that choose collectives and sizes."""
    names = list(COLLECTIVES)
    parser.add_argument("--collectives", nargs="+", default=names, choices=names)
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=sizes, help="as 64K")


def repeat(options: argparse.Namespace, run: Callable[[int], Findings]) -> Findings:
    """Call ``run`` for every number of ranks in every run; return the medians over runs."""
    sections: dict[str, list[list[Cell]]] = {}
    for number in range(options.runs):
        cells: Findings = {}
        for ranks in options.ranks:
            start = time.monotonic()
            for section, found in run(ranks).items():
                cells.setdefault(section, []).extend(found)
            spent = time.monotonic() - start
            print(f"run {number + 1} of {options.runs}, {ranks} ranks: {spent:.0f} s", flush=True)
        for section, found in cells.items():
            sections.setdefault(section, []).append(found)
    return {section: merge_runs(runs) for section, runs in sections.items()}


def show(cells: list[Cell], size_name: str = "bytes") -> None:
    """Print a table for each number of ranks: microseconds by library, and pccl's advantage."""
    console = Console(width=180)
    for ranks in dict.fromkeys(cell.ranks for cell in cells):
        these = [cell for cell in cells if cell.ranks == ranks]
        collectives = list(dict.fromkeys(cell.collective for cell in these))
        title = f"{ranks} ranks: us of {' / '.join(these[0].us)} (times faster than the next)"
        table = Table(title=title)
        for name in (size_name, *collectives):
            table.add_column(name, justify="right")
        for size in dict.fromkeys(cell.bytes for cell in these):
            row = {cell.collective: _text(cell) for cell in these if cell.bytes == size}
            table.add_row(str(size), *(row.get(name, "") for name in collectives))
        console.print(table)


def _text(cell: Cell) -> str:
    times = " / ".join(f"{us:.1f}" for us in cell.us.values())
    return times if cell.ratio is None else f"{times} ({cell.ratio:.2f}x)"


def show_summary(cells: list[Cell]) -> dict[str, Any]:
    """Print and return the means by class of size, for each number of ranks."""
    found = {}
    for ranks in dict.fromkeys(cell.ranks for cell in cells):
        found[f"{ranks} ranks"] = summary([cell for cell in cells if cell.ranks == ranks])
        for name, value in found[f"{ranks} ranks"].items():
            worst = f"worst cell {value['worst']:.2f}x"
            print(f"{ranks} ranks, {name}: {value['mean']:.2f}x, {worst}")
    return found


def write(
    name: str, options: argparse.Namespace, findings: Findings, summaries: dict[str, Any]
) -> None:
    """Write what the benchmark ``name`` found where ``--json`` says, and say where that is."""
    machine = _machine()
    path = options.json or RESULTS / f"{_today()}-{name}-{_short_name(machine)}.json"
    shown = {key: value for key, value in vars(options).items() if key != "json"}
    content = {"benchmark": name, "date": _today(), "machine": machine, "options": shown}
    cells = {section: [cell.to_json() for cell in found] for section, found in findings.items()}
    path.write_text(json.dumps(content | {"summary": summaries} | cells, indent=1) + "\n")
    print(f"written: {path}")


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def _machine() -> dict[str, Any]:
    versions = {name: _version(name) for name in ("torch", "numpy", "mpi4py")}
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
    } | {name: found for name, found in versions.items() if found}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def _short_name(machine: dict[str, Any]) -> str:
    """Return the machine's part of a file name, such as ``2core-epyc``."""
    model = re.sub(NOT_IN_A_NAME, " ", machine["cpu"])
    words = re.findall(r"[a-z0-9]+", model.lower())
    return "-".join([f"{machine['cores']}core", *words])


def finish(name: str, options: argparse.Namespace, findings: Findings) -> int:
    """Show and write what compares pccl in one table of cells; return the exit status."""
    show(findings["cells"])
    write(name, options, findings, {"cells": show_summary(findings["cells"])})
    return name_slower(findings["cells"])


def name_slower(cells: list[Cell]) -> int:
    """Name the cells where another library is faster; return the exit status."""
    slower = [cell for cell in cells if cell.ratio is not None and cell.ratio < 1]
    for cell in slower:
        print(
            f"slower: {cell.collective} of {cell.bytes} bytes on {cell.ranks} ranks: {_text(cell)}"
        )
    return 1 if slower else 0

# SPDX-License-Identifier: Apache-2.0
"""``pccl tune``."""

import dataclasses
import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from pccl._internal.whole_file import check_writable
from pccl._version import __version__
from pccl.bench.sizes import bytes_of, sizes_between
from pccl.cli import terminal

if TYPE_CHECKING:
    from pccl.bench import tune as tuning

EXAMPLES = terminal.examples(
    "pccl tune                                    # measure, and keep the result",
    "pccl tune --ranks 2,4 --max 64K --dry-run    # only look",
    "pccl tune --ranks 2 --max 16K --transports tcp --dry-run    # over TCP",
)

HEADING = (
    f"#{'size':>7} {'chosen':<18} {'us':>8} /{'predict.':>8}  {'fastest':<18} {'us':>8} {'loss':>4}"
)


def tune(
    ranks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N",
            help="Processes to start, as in 2,4.  [default: powers of 2, up to the cores]",
        ),
    ] = None,
    largest: Annotated[str, typer.Option("--max", help="Largest size, bytes.")] = "64M",
    rounds: Annotated[int, typer.Option(help="Turns of each algorithm at a size.")] = 3,
    transports: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="Over these alone, as in tcp; a list without shm needs --dry-run.",
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Keep nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Measure which algorithm is fastest on this machine.

    It measures those that ranks of one host use for CPU tensors and arrays: in shared
    memory (shm_one_shot, shm_two_shot, shm_direct), over links, and capsules that PCCL_CAPSULES
    gives, with as many ranks as they are for. All later groups that share memory choose by what was
    found, so ranks must share it, but in a dry run (--transports tcp --dry-run). The table
    shows the one that groups choose now, what it takes beside what the cost model predicts, the
    fastest, and how much longer the chosen one takes; --json has all of them. It warns where others
    use the cores meanwhile: then the figures are unreliable.
    """
    from pccl.bench import tune as tuning  # not above: it needs the extension module

    file = None if dry_run else tuning.path()
    if file is not None:
        check_writable(file)
    sizes = sizes_between(1 << 10, bytes_of(largest), 4)
    jobs = [
        tuning.Job(ranks=count, sizes=sizes, rounds=rounds, transports=transports)
        for count in _numbers(ranks or []) or tuning.ranks_to_measure()
    ]
    _warn_if_busy()
    steps = sum(len(list(job.cases())) for job in jobs)
    seconds = sum(job.expected_seconds() for job in jobs)
    with terminal.progress("pccl tune", steps, seconds) as step:
        cells: list[tuning.Cell] = []
        for cell in itertools.chain.from_iterable(map(tuning.measured, jobs)):
            if not dry_run:
                tuning.check_kept(cell)
            if not as_json:
                _show(cell, heading=not cells or _table_of(cells[-1]) != _table_of(cell))
            cells.append(cell)
            step()
    table = "" if file is None else tuning.table_of(cells)
    if file is not None:
        tuning.save(table, file)
    if as_json:
        rows = [*map(dataclasses.asdict, cells)]
        kept_in = None if file is None else str(file)
        terminal.print_json({"pccl": __version__, "kept_in": kept_in, "cells": rows})
    else:
        print(table, end="")
        print("nothing is kept: a dry run" if file is None else f"kept in {file}")


def _warn_if_busy() -> None:
    from pccl.bench import tune as tuning

    share = tuning.busy_share()
    if share > tuning.QUIET_SHARE:
        terminal.complain(
            f"this machine is busy: others use {share:.0%} of its cores, so the figures are"
            " unreliable"
        )


def _numbers(lists: list[str]) -> list[int]:
    """Return the numbers of lists such as "2,4"."""
    words = [word.strip() for each in lists for word in each.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ValueError(f"--ranks {','.join(lists)}: write numbers, as in 2,4")
    return [int(word) for word in words]


def _table_of(cell: "tuning.Cell") -> tuple[int, str]:
    """Return what the cells of one table have in common."""
    return cell.ranks, cell.collective


def _show(cell: "tuning.Cell", *, heading: bool) -> None:
    if heading:
        print(f"# {cell.collective}, ranks: {cell.ranks}\n{HEADING}")
    print(_line(cell), flush=True)


def _line(cell: "tuning.Cell") -> str:
    chosen, best = cell.chosen, cell.best
    return (
        f"{cell.size:>8} {chosen:<18} {_time(cell.us[chosen])} /{_time(cell.predicted_us[chosen])}"
        f"  {best:<18} {_time(cell.us[best])} {_percent(cell.loss - 1)}"
    )


def _time(us: float) -> str:
    """Write microseconds in eight columns."""
    return f"{us:>8.1f}" if us < 999_999.95 else f"{us:>8.2e}"


def _percent(loss: float) -> str:
    """Write a loss in four columns: what is beyond "999%" is only shown as large."""
    return f"{loss:>4.0%}" if loss < 9.995 else ">10x"

# SPDX-License-Identifier: Apache-2.0
"""``pccl bench``."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pccl._internal.whole_file import check_writable, write_whole
from pccl._version import __version__
from pccl.bench.names import COLLECTIVES, REDUCTIONS
from pccl.bench.sizes import bytes_of, sizes_between
from pccl.cli import terminal

if TYPE_CHECKING:
    from pccl.bench import collectives as benchmark

_DEFAULT_RANKS = 2

EXAMPLES = terminal.examples(
    "pccl bench --max 1M",
    "pccl bench all_reduce broadcast --ranks 4 --min 64K --max 1M",
    "pccl bench --gpus 0,1 --min 256K --max 16M",
    "pccl bench all_reduce --dtype float16 --op max --max 64K --json > rows.json",
)


def bench(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COLLECTIVE", help=f"Among {', '.join(COLLECTIVES)}; else all of them."
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(help=f"Processes to start on this machine.  [default: {_DEFAULT_RANKS}]"),
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="LIST", help="GPUs instead, a process for each: 0,1.")
    ] = None,
    smallest: Annotated[str, typer.Option("--min", help="Smallest size, bytes.")] = "1K",
    largest: Annotated[str, typer.Option("--max", help="Largest size, bytes.")] = "64M",
    factor: Annotated[int, typer.Option(help="From one size to the next.")] = 4,
    dtype: Annotated[str, typer.Option(help="Element type, by its name in numpy.")] = "float32",
    op: Annotated[str | None, typer.Option(help="Reduction.  [default: sum]")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="File for the JSON object, beside the tables.")
    ] = None,
) -> None:
    """Time collectives between processes of this machine.

    They run over numpy arrays, or in the memory of GPUs; torch is not needed. Sizes are those of
    the whole buffer. Times are medians of the slowest rank's; algbw is size over time, and busbw
    what a link of a ring would carry, both in 10^9 bytes a second. GPUs get several launches at
    once, whose time is shared out. Results are checked: #wrong counts the elements that are not
    what numpy computes.
    """
    from pccl.bench import collectives as benchmark  # not above: they load numpy
    from pccl.bench import gpus as gpu_benchmark

    chosen = collectives or list(COLLECTIVES)
    if as_json and output is None and chosen[-1].endswith(".json"):
        as_json, output = False, Path(chosen.pop())
        terminal.complain(f"--json takes no file any more: write --output {output}")
    if output and not output.parent.is_dir():
        raise ValueError(f"no folder for the rows: {output.parent}")
    if output:
        check_writable(output)
    if op is not None and not set(chosen) & set(REDUCTIONS):
        raise ValueError(f"--op {op} has no effect on {', '.join(chosen)}")
    if gpus is not None and ranks is not None:
        raise ValueError("--ranks has no effect with --gpus, which has a process for each")
    cards = gpu_benchmark.parse_gpus(gpus) if gpus is not None else ()
    processes = len(cards) if cards else _DEFAULT_RANKS if ranks is None else ranks
    job = benchmark.Job(
        sizes=sizes_between(bytes_of(smallest), bytes_of(largest), factor),
        collectives=tuple(chosen or COLLECTIVES),
        ranks=processes,
        dtype=dtype,
        op="sum" if op is None else op,
    )
    rows = _measure(job, cards, is_shown=not as_json)
    on = {"gpus": cards} if cards else {}
    found = {
        "pccl": __version__,
        "ranks": job.ranks,
        **on,
        "rows": [*map(dataclasses.asdict, rows)],
    }
    if as_json:
        terminal.print_json(found)
    if output:
        write_whole(output, json.dumps(found, indent=1) + "\n")
    raise typer.Exit(1 if any(row.wrong for row in rows) else 0)


def _measure(
    job: "benchmark.Job", gpus: tuple[int, ...], *, is_shown: bool
) -> list["benchmark.Row"]:
    """Measure; print row by row, if so wanted, with a heading for each collective."""
    from pccl.bench import collectives as benchmark
    from pccl.bench import gpus as gpu_benchmark

    rows: list[benchmark.Row] = []
    steps = len(list(job.cases()))
    seconds = gpu_benchmark.expected_seconds(job) if gpus else job.expected_seconds()
    place = f"GPUs: {','.join(map(str, gpus))}" if gpus else f"ranks: {job.ranks}"
    measured = gpu_benchmark.measured(job, gpus) if gpus else benchmark.measured(job)
    with terminal.progress("pccl bench", steps, seconds) as step:
        for row in measured:
            if is_shown and (not rows or rows[-1].collective != row.collective):
                print(f"# {row.collective}, {place}\n{benchmark.table_header()}")
            if is_shown:
                print(row.line(), flush=True)
            rows.append(row)
            step()
    return rows

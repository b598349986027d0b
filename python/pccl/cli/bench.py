"""``pccl bench``."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from pccl._version import __version__
from pccl.bench import collectives as benchmark
from pccl.bench.cases import COLLECTIVES, REDUCTIONS
from pccl.cli import terminal

EXAMPLES = terminal.examples(
    "pccl bench --max 1M",
    "pccl bench all_reduce broadcast --ranks 4 --min 64K --max 1M",
    "pccl bench all_reduce --dtype float16 --op max --max 64K --json > rows.json",
)


def bench(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COLLECTIVE", help=f"Among {', '.join(COLLECTIVES)}; else all of them."
        ),
    ] = None,
    ranks: Annotated[int, typer.Option(help="Processes to start on this machine.")] = 2,
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

    They run over numpy arrays; torch is not needed. Sizes are those of the whole buffer. Times are
    medians of the slowest rank's; algbw is size over time, and busbw what a link of a ring would
    carry, both in 10^9 bytes a second. Results are checked: #wrong counts the elements that are not
    what numpy computes.
    """
    chosen = collectives or list(COLLECTIVES)
    if as_json and output is None and chosen[-1].endswith(".json"):
        as_json, output = False, Path(chosen.pop())
        terminal.complain(f"--json takes no file any more: write --output {output}")
    if output and not output.parent.is_dir():
        raise ValueError(f"no folder for the rows: {output.parent}")
    if op and not set(chosen) & set(REDUCTIONS):
        raise ValueError(f"--op {op} has no effect on {', '.join(chosen)}")
    job = benchmark.Job(
        sizes=benchmark.sizes_between(
            benchmark.parse_size(smallest), benchmark.parse_size(largest), factor
        ),
        collectives=tuple(chosen or COLLECTIVES),
        ranks=ranks,
        dtype=dtype,
        op=op or "sum",
    )
    rows = _measure(job, is_shown=not as_json)
    found = {"pccl": __version__, "ranks": ranks, "rows": [*map(dataclasses.asdict, rows)]}
    if as_json:
        terminal.print_json(found)
    if output:
        output.write_text(json.dumps(found, indent=1) + "\n")
    raise typer.Exit(1 if any(row.wrong for row in rows) else 0)


def _measure(job: benchmark.Job, *, is_shown: bool) -> list[benchmark.Row]:
    """Measure; print row by row, if so wanted, with a heading for each collective."""
    rows: list[benchmark.Row] = []
    steps = len(list(job.cases()))
    with terminal.progress("pccl bench", steps, job.expected_seconds()) as step:
        for row in benchmark.measured(job):
            if is_shown and (not rows or rows[-1].collective != row.collective):
                print(f"# {row.collective}, ranks: {job.ranks}\n{benchmark.table_header()}")
            if is_shown:
                print(row.line(), flush=True)
            rows.append(row)
            step()
    return rows

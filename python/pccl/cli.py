"""The command ``pccl``."""

import dataclasses
import importlib.metadata
import json
import platform
import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import pccl
from pccl import _build_info, flight
from pccl import bench as benchmark
from pccl import tune as tuning
from pccl._version import __version__
from pccl.bench_cases import COLLECTIVES

app = typer.Typer(
    help="PCCL: programmable collective communication.",
    no_args_is_help=True,
    add_completion=False,
)

# Of its errors, typer exports this one; its base is that of all that are about the command line.
_USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


@app.callback()
def _commands() -> None:
    """PCCL: programmable collective communication."""


def _installed(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _facts() -> dict[str, str]:
    return {
        "pccl": __version__,
        "built against torch": _build_info.TORCH_VERSION,
        "installed torch": _installed("torch"),
        "numpy": _installed("numpy"),
        "python": platform.python_version(),
        "modules": ", ".join(_build_info.MODULES) or "none",
        "CUDA kernels": "yes" if _build_info.CUDA else "no",
        "compiler": f"{_build_info.COMPILER} ({_build_info.BUILD_TYPE})",
        "machine": platform.machine(),
    }


@app.command()
def info() -> None:
    """Print versions and what this build holds."""
    table = Table(show_header=False, box=None)
    for name, value in _facts().items():
        table.add_row(name, value)
    Console().print(table)


@app.command()
def bench(
    collectives: Annotated[
        list[str] | None, typer.Argument(help=f"Among {', '.join(COLLECTIVES)}; all of them.")
    ] = None,
    ranks: Annotated[int, typer.Option(help="Processes to start on this machine.")] = 2,
    smallest: Annotated[str, typer.Option("--min", help="Smallest size, bytes.")] = "1K",
    largest: Annotated[str, typer.Option("--max", help="Largest size, bytes.")] = "64M",
    factor: Annotated[int, typer.Option(help="From one size to the next.")] = 4,
    dtype: Annotated[str, typer.Option(help="Element type, by its name in numpy.")] = "float32",
    op: Annotated[str, typer.Option(help="Reduction.")] = "sum",
    out: Annotated[Path | None, typer.Option("--json", help="File for the rows.")] = None,
) -> None:
    """Time collectives over numpy arrays between processes of this machine.

    Sizes are those of the whole buffer. Times are medians of the slowest rank's; algbw is size over
    time, and busbw what a link of a ring would carry, both in 10^9 bytes a second. Results are
    checked: #wrong counts the elements that are not what numpy computes.
    """
    if out and not out.parent.is_dir():
        raise typer.BadParameter(f"no folder for the rows: {out.parent}")
    try:
        low, high = benchmark.parse_size(smallest), benchmark.parse_size(largest)
        job = benchmark.Job(
            sizes=benchmark.sizes_between(low, high, factor),
            collectives=tuple(collectives or COLLECTIVES),
            ranks=ranks,
            dtype=dtype,
            op=op,
        )
        rows = _print_rows(job)
    except (ValueError, pccl.Error) as error:
        _complain(str(error))
        raise typer.Exit(2) from None
    if out:
        found = {"pccl": __version__, "ranks": ranks, "rows": [*map(dataclasses.asdict, rows)]}
        out.write_text(json.dumps(found, indent=1) + "\n")
    raise typer.Exit(1 if any(row.wrong for row in rows) else 0)


@app.command()
def topo(
    load: Annotated[
        Path | None, typer.Option(help="Topology XML of NCCL or hwloc; else this machine.")
    ] = None,
    assume: Annotated[
        str, typer.Option(help="For what is not known: sm=90,nvlinks=18,net_speed=400000,p2p=0.")
    ] = "",
    search: Annotated[
        str | None, typer.Option(help="Channels to look for: ring, tree or heads.")
    ] = None,
    nodes: Annotated[int, typer.Option(help="Equal machines in the job.")] = 1,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time links between cores; groups count on it.")
    ] = False,
    meet: Annotated[
        str,
        typer.Option(
            help="With --measure: time networks instead; where the ranks of all hosts meet"
            ", as in tcp://host:port (rank 0 listens)."
        ),
    ] = "",
    rank: Annotated[int, typer.Option(help="With --meet: this process.")] = 0,
    ranks: Annotated[int, typer.Option(help="With --meet: processes on all hosts.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    strict: Annotated[bool, typer.Option(help="Warnings are errors.")] = False,
    xml: Annotated[Path | None, typer.Option(help="File for the topology, in NCCL's XML.")] = None,
    graph: Annotated[Path | None, typer.Option(help="File for the plan, in NCCL's XML.")] = None,
    svg: Annotated[
        Path | None, typer.Option(help="File for a picture: of the plan, if any.")
    ] = None,
) -> None:
    """Show a machine: its tree, what looks wrong with it, paths, and the best channels.

    Bandwidths are in 10^9 bytes a second, one way. docs/topology.md explains types of paths and
    warnings.
    """
    from pccl import topology_cli  # not above: the other commands need no extension module

    request = topology_cli.Request(
        load=load,
        assume=assume,
        search=search,
        nodes=nodes,
        measure=measure,
        meet=meet,
        rank=rank,
        ranks=ranks,
        strict=strict,
        as_json=as_json,
        xml=xml,
        graph=graph,
        svg=svg,
    )
    try:
        topology_cli.run(request)
    except (ImportError, OSError, ValueError, pccl.Error) as error:
        _complain(str(error))
        raise typer.Exit(2) from None


@app.command()
def debug(
    files: Annotated[list[Path], typer.Argument(help="Flight records, one of each process.")],
) -> None:
    """Say which rank is behind in what, from the flight records of a job that hangs or failed.

    Processes write them to the folder PCCL_FLIGHT_DIR when an operation fails, and on SIGUSR1.
    """
    try:
        records = [record for path in files for record in flight.load(path)]
    except (OSError, ValueError) as error:
        _complain(str(error))
        raise typer.Exit(2) from None
    for paragraph in flight.explain(records):
        print(textwrap.fill(paragraph, width=100, subsequent_indent="  "))


def _print_rows(job: benchmark.Job) -> list[benchmark.Row]:
    """Measure and print row by row, with a heading for each collective."""
    rows: list[benchmark.Row] = []
    for row in benchmark.run(job):
        if not rows or rows[-1].collective != row.collective:
            print(f"# {row.collective}, ranks: {job.ranks}\n{benchmark.table_header()}")
        print(row.line(), flush=True)
        rows.append(row)
    return rows


@app.command()
def tune(
    ranks: Annotated[
        list[int] | None, typer.Option(help="Processes to start; 2, 4 ... up to the cores.")
    ] = None,
    largest: Annotated[str, typer.Option("--max", help="Largest size, bytes.")] = "64M",
    rounds: Annotated[int, typer.Option(help="Turns of each algorithm at a size.")] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Keep nothing.")] = False,
) -> None:
    """Measure which algorithm is fastest on this machine, and keep that for all later groups.

    The table shows the time of each algorithm, a star at the one that groups choose now, and how
    much longer it takes than the best.
    """
    try:
        file = tuning.path()
        sizes = benchmark.sizes_between(1 << 10, benchmark.parse_size(largest), 4)
        jobs = [
            tuning.Job(ranks=count, sizes=sizes, rounds=rounds)
            for count in ranks or tuning.ranks_to_measure()
        ]
        cells = [cell for job in jobs for cell in _print_cells(job)]
        if not dry_run:
            tuning.save(tuning.table_of(cells), file)
            print(f"kept in {file}")
    except (ValueError, OSError, pccl.Error) as error:
        _complain(str(error))
        raise typer.Exit(2) from None


def _print_cells(job: tuning.Job) -> list[tuning.Cell]:
    """Measure and print cell by cell, with a heading for each collective."""
    cells: list[tuning.Cell] = []
    for cell in tuning.run(job):
        if not cells or cells[-1].collective != cell.collective:
            names = "".join(f" {name:>15}" for name in sorted(cell.us))
            print(f"# {cell.collective}, ranks: {job.ranks}, us\n#{'size':>11}{names} {'loss':>6}")
        times = "".join(
            f" {us:>14.1f}{'*' if name == cell.chosen else ' '}"
            for name, us in sorted(cell.us.items())
        )
        print(f"{cell.size:>12}{times} {cell.loss - 1:>6.0%}", flush=True)
        cells.append(cell)
    return cells


def _complain(message: str) -> None:
    """Print one line; nothing where typer has shown its help instead of a message."""
    if message:
        print(f"pccl: {' '.join(message.split())}", file=sys.stderr)


def main() -> None:
    """Entry point of the ``pccl`` command; an error is one line and status 2."""
    try:
        status = app(standalone_mode=False)
    except _USAGE_ERROR as error:
        _complain(error.format_message())
        status = error.exit_code
    sys.exit(status)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""``pccl p2p``."""

import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pccl._internal.whole_file import check_writable, write_whole
from pccl._version import __version__
from pccl.bench.sizes import bytes_of, sizes_between
from pccl.cli import terminal

if TYPE_CHECKING:
    from pccl.bench import p2p as benchmark

BENCH_EXAMPLES = (
    "pccl p2p bench",
    "pccl p2p bench --transports tcp --max 16M --output rows.json",
    "pccl p2p bench --min 4K --max 1M --batch 1 --batch 128",
    "pccl p2p bench --device cuda --blocks 10000 --block 16K",
    "pccl p2p bench --transports tcp --sockets 1 --sockets 4",
    "pccl p2p bench --sockets 4 --chunk 64K --chunk 1M --window 1 --window 16",
)
SOAK_EXAMPLES = (
    "pccl p2p soak --whole 8G --seconds 600 --seed 7",
    "pccl p2p soak --kills 1000",
)

_USUAL_CHUNK = 256 << 10

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Sessions: transfers between processes without ranks.",
    epilog=terminal.examples(*BENCH_EXAMPLES, *SOAK_EXAMPLES),
)


@app.command("bench", epilog=terminal.examples(*BENCH_EXAMPLES))
def bench(
    transports: Annotated[str, typer.Option(help="Among shm, verbs and tcp.")] = "shm,tcp",
    smallest: Annotated[str, typer.Option("--min", help="Smallest transfer, bytes.")] = "64K",
    largest: Annotated[str, typer.Option("--max", help="Largest transfer, bytes.")] = "64M",
    blocks: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Of the case of many, whatever --max is.")
    ] = 100_000,
    block: Annotated[str, typer.Option(help="Bytes of each of these.")] = "4K",
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Blocks of each size; again for several.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda: memory of GPUs, too.")] = "cpu",
    seconds: Annotated[float, typer.Option(min=0.01, max=60, help="Of each case.")] = 0.5,
    sockets: Annotated[
        list[int] | None, typer.Option(min=1, max=16, help="Of TCP; again for several.")
    ] = None,
    chunk: Annotated[
        list[str] | None, typer.Option(help="Bytes of a message; again for several.")
    ] = None,
    window: Annotated[
        list[int] | None, typer.Option(min=1, help="Messages under way; again for several.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="File for the JSON object, beside the table.")
    ] = None,
) -> None:
    """Time one-sided reads and writes of another process's memory.

    That process makes no call meanwhile. Times are medians; the ratio is time over that of a
    peer in the same run: for latencies the round trip of a bare TCP socket, over TCP one stream of
    iperf3 (of a bare socket where that is not installed), on one host a memcpy of one thread, and
    for many blocks numpy.take, which copies block by block. On cuda, reads alone; the peer is
    torch, which copies as many bytes in one piece and process. With --batch each size is moved so
    many times in one transfer, scattered, as nixlbench does. With --chunk or --window the largest
    transfer is also moved as messages with tags, in which the other process takes part: of each
    chunk, with each window, over each number of sockets.
    """
    from pccl.bench import p2p as benchmark  # not above: they load numpy
    from pccl.bench import p2p_gpus, p2p_host, p2p_sweep

    if device not in ("cpu", "cuda"):
        raise ValueError(f'--device is cpu or cuda, not "{device}"')
    if output and not output.parent.is_dir():
        raise ValueError(f"no folder for the rows: {output.parent}")
    if output:
        check_writable(output)
    chunks = [bytes_of(each) for each in chunk or []]
    if window and not chunks:
        chunks = [_USUAL_CHUNK]
    plan = benchmark.Bench(
        transports=tuple(transports.split(",")),
        sizes=sizes_between(bytes_of(smallest), bytes_of(largest), 4),
        blocks=blocks,
        block_bytes=bytes_of(block),
        seconds=seconds,
        sockets=tuple(sockets or [0]),
        chunks=tuple(chunks),
        windows=tuple(window or [16]),
        batches=tuple(batch or [1]),
    )
    typer.echo(
        f"{len(plan.sizes)} sizes, {seconds:g} s for each read and write of each path; then"
        f" {blocks:,} blocks of {block}, in many calls (fewer: --blocks)",
        err=True,
    )
    rows = (p2p_gpus if device == "cuda" else p2p_host).measure(plan)
    if chunks:
        rows += p2p_sweep.measure(plan)
    where = {"version": __version__, "machine": platform.machine(), "cores": os.cpu_count()}
    values = where | {"rows": [row.values() for row in rows]}
    if as_json:
        terminal.print_json(values)
    else:
        _print_table(rows)
    if output:
        write_whole(output, json.dumps(values, indent=1) + "\n")


def _print_table(rows: list["benchmark.Row"]) -> None:
    path = max(len(row.path) for row in rows)
    case = max(len(row.case) for row in rows)
    heading = f"{'path':<{path}} {'op':<5} {'case':<{case}} {'blocks':>7} {'of bytes':>9}"
    typer.echo(f"{heading} {'us':>10} {'GB/s':>7}   ratio to")
    for row in rows:
        typer.echo(
            f"{row.path:<{path}} {row.op:<5} {row.case:<{case}} {row.blocks:>7}"
            f" {row.nbytes // row.blocks:>9} {row.seconds * 1e6:>10.2f}"
            f" {row.gigabytes:>7.2f}   {row.ratio:.2f} {row.peer}"
        )


@app.command("soak", epilog=terminal.examples(*SOAK_EXAMPLES))
def soak(
    transports: Annotated[str, typer.Option(help="Among shm, verbs and tcp.")] = "shm,tcp",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choices.")] = 0,
    seconds: Annotated[float, typer.Option(min=1, max=86400, help="How long.")] = 60,
    kills: Annotated[int, typer.Option(min=0, help="End after this number of kills instead.")] = 0,
    whole: Annotated[
        str | None, typer.Option(help="Bytes of one read and one write before all else.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
) -> None:
    """Read and write memory of a process that is killed and comes back.

    Lists of blocks of any size, messages with tags, notifications, connections that are ended,
    and processes that are killed in the middle of reads, writes, lists and messages; all bytes
    are compared. The status is 1 if a transfer was done with other bytes than those that were
    written, a notification got lost, connections left descriptors, threads or shared memory
    behind, or this process's memory grew by more than 32 MiB beyond its most in the first 10 s.
    """
    from pccl.bench import p2p_soak

    nbytes = bytes_of(whole) if whole else 0
    tally = p2p_soak.soak(p2p_soak.Soak(transports, seed, seconds, kills, nbytes))
    if as_json:
        terminal.print_json(tally.values())
    else:
        for name, value in tally.values().items():
            shown = ", ".join(value) or "nothing" if name == "left" else value
            typer.echo(f"{name:<14} {shown:>16}")
    if tally.has_failed():
        raise typer.Exit(1)

# SPDX-License-Identifier: Apache-2.0
"""Sessions beside a memcpy, a bare socket and one stream of iperf3, as ``pccl p2p bench``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from common import report
from common.cells import KIB, MIB, Cell

from pccl.bench import p2p_host
from pccl.bench.p2p import Bench, Row

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

SIZES = [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB]


def cells_of(rows: Iterable[Row]) -> dict[str, list[Cell]]:
    """Return the rows by path; bytes are those of a block."""
    cells: dict[str, list[Cell]] = {}
    for row in rows:
        us = {"pccl": 1e6 * row.seconds, row.peer: 1e6 * row.peer_seconds}
        cell = Cell(f"{row.op} x {row.blocks}", 2, row.nbytes // row.blocks, us, "uint8")
        cells.setdefault(row.path, []).append(cell)
    return cells


def run(options: argparse.Namespace) -> dict[str, list[Cell]]:
    bench = Bench(
        transports=("shm", "tcp"),
        sizes=tuple(options.sizes),
        blocks=options.blocks,
        block_bytes=4 * KIB,
        seconds=options.seconds,
        batches=tuple(options.batches),
    )
    return cells_of(p2p_host.measure(bench))


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=0.3)
    parser.add_argument("--sizes", type=report.bytes_of, nargs="+", default=SIZES, help="as 64K")
    parser.add_argument("--blocks", type=int, default=100_000, help="of 4 KiB")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 128])
    options = parser.parse_args()
    findings = report.repeat(options, lambda _: run(options))
    summaries = {}
    for path, cells in findings.items():
        print(path)
        summaries[path] = report.show_summary(cells)
    report.write("p2p", options, findings, summaries)
    return 0


if __name__ == "__main__":
    sys.exit(main())

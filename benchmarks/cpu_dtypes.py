# SPDX-License-Identifier: Apache-2.0
"""all_reduce of 1 MiB by element type, through torch.distributed on one host.

    python benchmarks/cpu_dtypes.py --ranks 2 --runs 3

All types take turns. The element rate is elements over time, the byte rate bytes over time; both
are given relative to float32's. Sums, but int8 and bool take the maximum. Gloo is measured where it
has the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from common import report, torch_peers
from common.cells import MIB, Cell
from common.launch import run_ranks, run_script
from common.timing import Budget, take_turns
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from common.launch import Findings, Seat

    from pccl.bench.cases import Call

SIZE = MIB
TYPES = {
    "float32": (torch.float32, dist.ReduceOp.SUM),
    "bfloat16": (torch.bfloat16, dist.ReduceOp.SUM),
    "float16": (torch.float16, dist.ReduceOp.SUM),
    "int8": (torch.int8, dist.ReduceOp.MAX),
    "complex64": (torch.complex64, dist.ReduceOp.SUM),
    "bool": (torch.bool, dist.ReduceOp.MAX),
}


def make_tensor(name: str) -> torch.Tensor:
    dtype = TYPES[name][0]
    return torch.zeros(SIZE // dtype.itemsize, dtype=dtype)


def make_call(name: str, group: dist.ProcessGroup) -> Call:
    x, op = make_tensor(name), TYPES[name][1]
    return lambda: dist.all_reduce(x, op, group=group)


def is_right(name: str, group: dist.ProcessGroup) -> bool | None:
    """Return whether every element of one all_reduce is right; None if the type is refused."""
    x, op = make_tensor(name), TYPES[name][1]
    ranks = group.size()
    x.fill_(dist.get_rank() % 2)
    try:
        dist.all_reduce(x, op, group=group)
    except RuntimeError:
        return None
    expected = ranks // 2 if op == dist.ReduceOp.SUM else int(ranks > 1)
    return bool((x == expected).all())


def worker(seat: Seat) -> Findings:
    groups = torch_peers.open_groups(seat)
    calls = {}
    for backend, group in groups.items():
        for name in TYPES:
            right = is_right(name, group)
            if right is False:
                raise ArithmeticError(f"{backend}: a wrong result for {name}")
            if right:
                calls[f"{backend} {name}"] = make_call(name, group)
    us = take_turns(calls, torch_peers.make_team(groups), Budget.of(seat.options))
    dist.destroy_process_group()
    cells = []
    for name in TYPES:
        found = {key.split()[0]: time for key, time in us.items() if key.split()[1] == name}
        cells.append(Cell("all_reduce", seat.ranks, SIZE, found, dtype=name))
    return {"cells": cells}


def relative_rates(cells: list[Cell]) -> dict[str, dict[str, float]]:
    """Return element and byte rate of pccl over float32's, by type."""
    reference = next(cell.us["pccl"] for cell in cells if cell.dtype == "float32")
    rates = {}
    for cell in cells:
        bytes_rate = reference / cell.us["pccl"]
        rates[cell.dtype] = {
            "elements": bytes_rate * 4 / TYPES[cell.dtype][0].itemsize,
            "bytes": bytes_rate,
        }
    return rates


def show(cells: list[Cell], rates: dict[str, dict[str, float]]) -> None:
    table = Table(title=f"{cells[0].ranks} ranks: all_reduce of 1 MiB, pccl's rates over float32's")
    for name in ("type", "pccl us", "gloo us", "elements/s", "bytes/s"):
        table.add_column(name, justify="right")
    for cell in cells:
        gloo = f"{cell.us['gloo']:.1f}" if "gloo" in cell.us else "refused"
        rate = rates[cell.dtype]
        relative = (f"{rate['elements']:.2f}x", f"{rate['bytes']:.2f}x")
        table.add_row(cell.dtype, f"{cell.us['pccl']:.1f}", gloo, *relative)
    Console().print(table)


def main() -> int:
    options = report.make_parser(__doc__, ranks=[2], seconds=0.1).parse_args()
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks))
    summaries = {}
    for ranks in options.ranks:
        cells = [cell for cell in findings["cells"] if cell.ranks == ranks]
        summaries[f"{ranks} ranks"] = relative_rates(cells)
        show(cells, summaries[f"{ranks} ranks"])
    report.write("cpu_dtypes", options, findings, summaries)
    return 0


if __name__ == "__main__":
    run_script(main, worker)

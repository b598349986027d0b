# SPDX-License-Identifier: Apache-2.0
"""Collectives through torch.distributed on one host: pccl against Gloo, in one run.

    python benchmarks/cpu_torch.py --ranks 2 4 --runs 3

Exits with status 1 when a cell is slower than Gloo. Also measures what a call costs without any
communication (torch's "fake" backend), and what async_op=True and wait() add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # registers the backend "fake"
from common import report, torch_peers
from common.cells import KIB, Cell
from common.launch import run_ranks, run_script
from common.timing import Budget, take_turns

if TYPE_CHECKING:
    from common.launch import Findings, Seat


def measure_overheads(groups: torch_peers.Groups, budget: Budget) -> Cell:
    """1 KiB all_reduce: synchronous, asynchronous, and on a backend that does nothing."""
    fake = dist.new_group(backend="fake")
    x = torch.zeros(KIB // 4)
    calls = {
        "pccl": lambda: dist.all_reduce(x, group=groups["pccl"]),
        "pccl_async": lambda: dist.all_reduce(x, group=groups["pccl"], async_op=True).wait(),
        "fake": lambda: dist.all_reduce(x, group=fake),
    }
    us = take_turns(calls, torch_peers.make_team(groups), budget)
    return Cell("all_reduce", dist.get_world_size(), KIB, us)


def worker(seat: Seat) -> Findings:
    groups = torch_peers.open_groups(seat)
    overheads = measure_overheads(groups, Budget.of(seat.options))
    cells = torch_peers.measure_cells(groups, seat.options)
    dist.destroy_process_group()
    return {"cells": cells, "overheads": [overheads]}


def show_overheads(cells: list[Cell]) -> dict[str, dict[str, float]]:
    """Print and return the ratios, for each number of ranks."""
    found = {}
    for cell in cells:
        us = cell.us
        ratios = {"pccl/fake": us["pccl"] / us["fake"], "async/sync": us["pccl_async"] / us["pccl"]}
        found[f"{cell.ranks} ranks"] = ratios
        print(
            f"{cell.ranks} ranks, all_reduce of 1 KiB: pccl {us['pccl']:.2f} us,"
            f" {ratios['pccl/fake']:.2f} times the fake backend's {us['fake']:.2f} us;"
            f" asynchronous {us['pccl_async']:.2f} us, {ratios['async/sync']:.2f} times synchronous"
        )
    return found


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2, 4], seconds=0.1)
    report.add_cells(parser)
    options = parser.parse_args()
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks))
    report.show(findings["cells"])
    summaries = {"cells": report.show_summary(findings["cells"])}
    summaries["overheads"] = show_overheads(findings["overheads"])
    report.write("cpu_torch", options, findings, summaries)
    return report.name_slower(findings["cells"])


if __name__ == "__main__":
    run_script(main, worker)

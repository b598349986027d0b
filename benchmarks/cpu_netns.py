# SPDX-License-Identifier: Apache-2.0
"""Collectives through torch.distributed over TCP: pccl against Gloo between two namespaces.

    sudo python benchmarks/cpu_netns.py --runs 3

Ranks live in two network namespaces of this machine that a veth pair joins, half of them in each.
Exits with status 1 when a cell is slower than Gloo.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch.distributed as dist
from common import report, torch_peers
from common.launch import run_ranks, run_script
from common.namespaces import commands_in, joined_namespaces

if TYPE_CHECKING:
    from common.launch import Findings, Seat


def worker(seat: Seat) -> Findings:
    cells = torch_peers.measure_cells(torch_peers.open_groups(seat), seat.options)
    dist.destroy_process_group()
    return {"cells": cells}


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=0.1)
    report.add_cells(parser)
    options = parser.parse_args()
    with joined_namespaces() as names:
        launcher = functools.partial(commands_in, names)
        findings = report.repeat(options, lambda ranks: run_ranks(options, ranks, launcher))
    return report.finish("cpu_netns", options, findings)


if __name__ == "__main__":
    run_script(main, worker)

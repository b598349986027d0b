# SPDX-License-Identifier: Apache-2.0
"""pccl and Gloo through torch.distributed, in the same processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from pccl.bench.cases import Case

from .cells import Cell
from .timing import Budget, Team, measure_case

if TYPE_CHECKING:
    import argparse

    from pccl.bench.cases import Call

    from .launch import Seat

Groups = dict[str, dist.ProcessGroup]

# The names that torch 2.13 calls deprecated are the only ones that 2.11 has.
all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def open_groups(seat: Seat) -> Groups:
    """Let all ranks meet through a file; both groups live until ``dist.destroy_process_group``."""
    torch.set_num_threads(1)
    url = f"file://{seat.folder}/store"
    dist.init_process_group("gloo", init_method=url, rank=seat.rank, world_size=seat.ranks)
    return {"pccl": dist.new_group(backend="pccl"), "gloo": dist.new_group(backend="gloo")}


def make_team(groups: Groups) -> Team:
    token = torch.zeros(1)

    def slowest(times: list[float]) -> list[float]:
        greatest = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(greatest, dist.ReduceOp.MAX, group=groups["pccl"])
        return greatest.tolist()

    return Team(dist.get_rank(), lambda: dist.all_reduce(token, group=groups["pccl"]), slowest)


def make_call(group: dist.ProcessGroup, case: Case, x: torch.Tensor, out: torch.Tensor) -> Call:
    """Return a function that runs ``case`` once, synchronously."""
    calls: dict[str, Call] = {
        "all_reduce": lambda: dist.all_reduce(out, group=group),
        "all_gather": lambda: all_gather(out, x, group=group),
        "reduce_scatter": lambda: reduce_scatter(out, x, group=group),
        "broadcast": lambda: dist.broadcast(out, 0, group=group),
        "all_to_all": lambda: dist.all_to_all_single(out, x, group=group),
    }
    return calls[case.collective]


def make_buffers(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return input and output, float32; one tensor where the collective is in place."""
    x = torch.zeros(case.input_elements)
    return x, x if case.is_in_place else torch.zeros(case.output_elements)


def measure_cells(groups: Groups, options: argparse.Namespace) -> list[Cell]:
    """Measure the collectives and sizes of ``options``."""
    team, budget = make_team(groups), Budget.of(options)
    cells = []
    for collective in options.collectives:
        for size in options.sizes:
            case = Case.of_bytes(collective, dist.get_world_size(), size)
            x, out = make_buffers(case)
            calls = {name: make_call(groups[name], case, x, out) for name in groups}
            us = measure_case(calls, case, (x.numpy(), out.numpy()), team, budget)
            cells.append(Cell(collective, case.ranks, size, us))
    return cells

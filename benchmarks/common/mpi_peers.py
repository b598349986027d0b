# SPDX-License-Identifier: Apache-2.0
"""An MPI through mpi4py. The import initialises MPI; a rank binds itself to its core before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from pccl.bench.cases import Array, Call, Case

WORLD = MPI.COMM_WORLD
OPERATORS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}


def all_reduce(x: Array, op: str) -> None:
    """In place."""
    WORLD.Allreduce(MPI.IN_PLACE, x, OPERATORS[op])


def broadcast(x: Array, root: int) -> None:
    WORLD.Bcast(x, root)


def make_call(case: Case, x: Array, out: Array) -> Call:
    """Return a function that runs ``case`` once over all ranks, on buffers, synchronously."""
    calls: dict[str, Call] = {
        "all_reduce": lambda: all_reduce(out, "sum"),
        "all_gather": lambda: WORLD.Allgather(x, out),
        "reduce_scatter": lambda: WORLD.Reduce_scatter_block(x, out, MPI.SUM),
        "broadcast": lambda: broadcast(out, 0),
        "all_to_all": lambda: WORLD.Alltoall(x, out),
    }
    return calls[case.collective]


def slowest(times: list[float]) -> list[float]:
    """Return the greatest time of all ranks for each call."""
    greatest: Any = np.array(times)
    WORLD.Allreduce(MPI.IN_PLACE, greatest, MPI.MAX)
    return list(greatest.tolist())

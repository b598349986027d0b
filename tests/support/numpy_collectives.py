# SPDX-License-Identifier: Apache-2.0
"""Collectives on integers of numpy: what ranks give, what they must get, and what they got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pccl

Array = np.ndarray[Any, Any]


def data_of(rank: int, count: int) -> Array:
    return (np.arange(count) * 7 + rank * 1000).astype(np.int64)


def expected_of(collective: str, inputs: Array, me: int, root: int) -> Any:
    """What numpy makes of everybody's input; None where this rank gets nothing."""
    ranks = len(inputs)
    blocks = inputs.reshape(ranks, ranks, -1)
    if collective in ("reduce", "gather") and me != root:
        return None
    return {
        "all_reduce": lambda: inputs.sum(axis=0),
        "reduce": lambda: inputs.sum(axis=0),
        "broadcast": lambda: inputs[root],
        "all_gather": lambda: blocks[:, 0].ravel(),
        "gather": lambda: blocks[:, 0].ravel(),
        "reduce_scatter": lambda: blocks.sum(axis=0)[me],
        "scatter": lambda: blocks[root, me],
        "all_to_all": lambda: blocks[:, me].ravel(),
    }[collective]()


def executed(operator: pccl.Operator, mine: Array, ranks: int) -> Array:
    """Run it, from one memory to another where the collective has two."""
    count = len(mine) // ranks
    if operator.collective in ("all_reduce", "reduce", "broadcast"):
        operator.run(mine)
        return mine
    block = operator.collective in ("all_gather", "gather")
    size = count if operator.collective in ("reduce_scatter", "scatter") else len(mine)
    out = np.zeros(size, np.int64)
    operator.run(mine[:count] if block else mine, out)
    return out


def executed_the_other_way(operator: pccl.Operator, mine: Array, ranks: int, me: int) -> Array:
    """Run all_reduce from one memory to another, the others in one memory, where they can be."""
    count = len(mine) // ranks
    own = slice(me * count, (me + 1) * count)
    if operator.collective == "all_reduce":
        out = np.zeros_like(mine)
        operator.run(mine, out)
        return out
    if operator.collective == "all_gather":
        out = np.zeros_like(mine)
        out[own] = mine[:count]
        operator.run(out[own], out)
        return out
    if operator.collective == "reduce_scatter":
        operator.run(mine, mine[own])
        return mine[own]
    return executed(operator, mine, ranks)

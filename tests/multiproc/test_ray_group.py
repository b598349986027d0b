# SPDX-License-Identifier: Apache-2.0
"""``pccl.ray`` on stubs of Ray: the group against numpy; make test-clients has Ray itself."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from support.client_stubs import RayOptions, ReduceOp, install_ray
from support.launch import run_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.multiproc
SIZE = 3


def on_actors(body: Callable[[Any, int], Any]) -> list[Any]:
    """Call ``body`` with the group and the rank of each actor, all of them threads."""

    def actor(rank: int) -> Any:
        group = group_class()(SIZE, rank, "actors")
        result = body(group, rank)
        group.destroy_group()
        return result

    with ThreadPoolExecutor(SIZE) as pool:
        return list(pool.map(actor, range(SIZE)))


def group_class() -> Any:
    return importlib.import_module("pccl.ray.group").CollectiveGroup


def x_of(rank: int) -> np.ndarray[Any, Any]:
    return np.arange(4.0) + 10 * rank


def every_function(rank: int, world_size: int) -> None:
    _, store = install_ray()
    inputs = [x_of(each) for each in range(SIZE)]
    reductions = {
        ReduceOp.SUM: np.sum(inputs, axis=0),
        ReduceOp.PRODUCT: np.prod(inputs, axis=0),
        ReduceOp.MIN: np.min(inputs, axis=0),
        ReduceOp.MAX: np.max(inputs, axis=0),
    }

    def body(group: Any, rank: int) -> None:
        for op, expected in reductions.items():
            group.allreduce([x := x_of(rank)], RayOptions(op))
            np.testing.assert_array_equal(x, expected)
        group.reduce([x := x_of(rank)], RayOptions(ReduceOp.MAX, root_rank=1))
        np.testing.assert_array_equal(x, inputs[2] if rank == 1 else inputs[rank])
        group.broadcast([x := x_of(rank)], RayOptions(root_rank=2))
        np.testing.assert_array_equal(x, inputs[2])
        parts = [np.empty(4) for _ in range(SIZE)]
        group.allgather([parts], [x_of(rank)], RayOptions())
        np.testing.assert_array_equal(parts, inputs)
        parts = [x_of(rank) * (each + 1) for each in range(SIZE)]
        group.reducescatter([x := np.empty(4)], [parts], RayOptions())
        np.testing.assert_array_equal(x, reductions[ReduceOp.SUM] * (rank + 1))
        if rank == 0:
            group.send([x_of(7)], RayOptions(dst_rank=2))
        if rank == 2:
            group.recv([x := np.empty(4)], RayOptions(src_rank=0))
            np.testing.assert_array_equal(x, x_of(7))
        group.barrier()

    for _ in range(2):  # the second group has the name of the first
        on_actors(body)
    assert {space for space, _ in store.entries} == {"pccl"}


def test_every_function_is_right() -> None:
    run_ranks(every_function, 1, backend=None)


def refusals(rank: int, world_size: int) -> None:
    registry, _ = install_ray()
    pccl.ray.register()
    pccl.ray.register()
    assert registry.classes == {"PCCL": group_class()}
    assert group_class().check_backend_availability()

    def body(group: Any, rank: int) -> None:
        with pytest.raises(pccl.InvalidArgumentError, match="2 tensors for this actor"):
            group.allreduce([x_of(0), x_of(1)], RayOptions())
        if rank == 0:
            limit = RayOptions(src_rank=1, timeout_ms=timedelta(milliseconds=50))
            with pytest.raises(pccl.TimeoutError):
                group.recv([np.empty(4)], limit)

    on_actors(body)


def test_wrong_calls_and_timeouts() -> None:
    run_ranks(refusals, 1, backend=None)

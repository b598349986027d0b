# SPDX-License-Identifier: Apache-2.0
"""Averages of integers are exact, and rounded towards zero, by every algorithm."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

import pccl
import pccl.lang as pl
from support.launch import not_on_gloo, run_ranks
from support.thread_ranks import run_threads
from support.torch_names import reduce_scatter_single

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
COUNT = 1003


def inputs(dtype: str, world_size: int, count: int = COUNT) -> list[np.ndarray[Any, Any]]:
    """Return one array for each rank: extreme values first, then random ones."""
    limits = np.iinfo(dtype)
    few = [limits.max, limits.min, limits.max - 1, limits.min + 1, 200 % limits.max, 0, 1, 7]
    arrays = []
    for rank in range(world_size):
        random = np.random.default_rng(rank)
        array = random.integers(limits.min, limits.max, count, dtype, endpoint=True)
        array[: len(few)] = few
        array[len(few) : 2 * len(few)] = np.roll(np.array(few, dtype=dtype), rank)
        arrays.append(array)
    return arrays


def average(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    sums = [sum(int(each[i]) for each in arrays) for i in range(len(arrays[0]))]
    n = len(arrays)
    return np.array([abs(s) // n * (1 if s >= 0 else -1) for s in sums], dtype=arrays[0].dtype)


def algorithms(kind: str) -> list[str]:
    over_shm = ["shm_one_shot", "shm_direct"] + (["shm_two_shot"] if kind == "all_reduce" else [])
    return [*pccl.schedule.algorithms(kind), *over_shm]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_numpy_by_every_algorithm(tmp_path: Path, world_size: int) -> None:
    def body(comm: pccl.Communicator) -> None:
        rank, size = comm.rank, comm.world_size
        for dtype in TYPES:
            arrays = inputs(dtype, size)
            expected = average(arrays)
            x = arrays[rank].copy()
            comm.all_reduce(x, op="avg")
            assert np.array_equal(x, expected), dtype
            x = arrays[rank].copy()
            comm.reduce(x, root=size - 1, op="avg")
            assert rank != size - 1 or np.array_equal(x, expected), dtype
            out = np.empty(COUNT, dtype)
            comm.reduce_scatter(out, np.tile(arrays[rank], size), op="avg")
            assert np.array_equal(out, expected), dtype
            event = comm.all_reduce(x := arrays[rank].copy(), op="avg", async_op=True)
            event.wait()
            assert np.array_equal(x, expected), dtype

    names = dict.fromkeys([*algorithms("all_reduce"), *algorithms("reduce_scatter"), ""])
    for number, name in enumerate(names):
        kinds = [
            kind for kind in ("all_reduce", "reduce", "reduce_scatter") if name in algorithms(kind)
        ]
        wanted = ",".join(f"{kind}={name}" for kind in kinds)
        # Some algorithms do not run on every number of ranks, or without direct access.
        with contextlib.suppress(pccl.UnsupportedError):
            run_threads(tmp_path / str(number), world_size, body, algorithm=wanted)


def test_values_that_would_wrap(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[list[int]]:
        brightness = np.array([200, 100, 255], np.uint8)
        counts = np.array([2**31 - 1, -7], np.int32)
        numbers = np.array([2**63 - 1, -(2**63), -1], np.int64)
        for x in (brightness, counts, numbers):
            comm.all_reduce(x, op="avg")
        mixed = np.array([-7 if comm.rank else 0], np.int16)
        comm.all_reduce(mixed, op="avg")
        return [each.tolist() for each in (brightness, counts, numbers, mixed)]

    for found in run_threads(tmp_path, 2, body):
        assert found == [[200, 100, 255], [2**31 - 1, -7], [2**63 - 1, -(2**63), -1], [-3]]


def test_a_capsule(tmp_path: Path) -> None:
    @pl.algorithm("all_reduce", ranks=3, chunks=3)
    def ring(c: pl.Program) -> None:
        for i in range(3):
            x = c.input(i, chunk=i)
            for hop in (1, 2):
                x = x.reduce_to((i + hop) % 3)
            for _ in (1, 2):
                x = x.copy_to((x.rank + 1) % 3)

    capsule = ring.build(name="ring3", sizes="1..")

    def body(comm: pccl.Communicator) -> None:
        comm.load(capsule)
        for dtype in TYPES:
            arrays = inputs(dtype, 3)
            x = arrays[comm.rank].copy()
            comm.all_reduce(x, op="avg")
            assert np.array_equal(x, average(arrays)), dtype

    run_threads(tmp_path, 3, body)


def torch_averages(rank: int, world_size: int) -> None:
    for dtype in TYPES:
        arrays = inputs(dtype, world_size)
        expected = torch.from_numpy(average(arrays))
        x = torch.from_numpy(arrays[rank].copy())
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert torch.equal(x, expected), dtype
        out = torch.empty_like(x)
        every = torch.from_numpy(np.tile(arrays[rank], world_size))
        reduce_scatter_single(out, every, dist.ReduceOp.AVG)
        assert torch.equal(out, expected), dtype


@not_on_gloo("has no averages of integers")
@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_torch(world_size: int, transports: str) -> None:
    run_ranks(torch_averages, world_size, environment={"PCCL_TRANSPORTS": transports})

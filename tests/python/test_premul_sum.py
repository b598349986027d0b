# SPDX-License-Identifier: Apache-2.0
"""Sums of every rank's elements times its own factor, beside numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pccl

RANKS = 3
FACTORS = [0.5, -2.0, 3.0]


def given(rank: int, dtype: str, elements: int = 1000) -> np.ndarray[Any, np.dtype[Any]]:
    values = np.random.default_rng(rank).integers(-50, 50, elements)
    return (values + 1j * values[::-1]).astype(dtype) if dtype[0] == "c" else values.astype(dtype)


def expected(dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    whole = sum(factor * given(rank, dtype) for rank, factor in enumerate(FACTORS))
    return np.asarray(whole, dtype)


def run(body: Any, *args: object) -> list[Any]:
    results: list[Any] = pccl.run(body, *args, ranks=RANKS, timeout=60)
    return results


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_every_reduction_takes_it(dtype: str) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        op = pccl.communicator.PremulSum(FACTORS[comm.rank])
        everywhere = given(comm.rank, dtype)
        comm.all_reduce(everywhere, op)
        at_root = given(comm.rank, dtype)
        comm.reduce(at_root, root=1, op=op)
        share = np.empty(len(at_root) // RANKS, dtype)
        whole = given(comm.rank, dtype)[: len(share) * RANKS]
        comm.reduce_scatter(share, list(np.split(whole, RANKS)), op)
        untouched = given(comm.rank, dtype)[: len(whole)]
        return [everywhere, at_root, share, np.array_equal(whole, untouched)]

    results = run(body)
    want = expected(dtype)
    for rank, (everywhere, at_root, share, is_untouched) in enumerate(results):
        np.testing.assert_array_equal(everywhere, want)
        np.testing.assert_array_equal(share, np.split(want[: 3 * len(share)], RANKS)[rank])
        np.testing.assert_array_equal(at_root, want if rank == 1 else given(rank, dtype))
        assert is_untouched


@pytest.mark.parametrize(
    "way", ["ring", "pat", "recursive_doubling", "shm_one_shot", "shm_two_shot"]
)
def test_by_every_algorithm_and_without_waiting(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(comm: pccl.Communicator) -> Any:
        x = given(comm.rank, "float32")
        comm.all_reduce(x, op=pccl.communicator.PremulSum(FACTORS[comm.rank]), async_op=True).wait()
        return x

    monkeypatch.setenv("PCCL_ALGORITHM", f"all_reduce={way}")
    for x in run(body):
        np.testing.assert_array_equal(x, expected("float32"))


def test_what_it_is_not_for(solo: pccl.Communicator) -> None:
    op = pccl.communicator.PremulSum(2.0)
    assert repr(op) == "PremulSum(factor=2.0)"
    assert op.factor == 2.0
    with pytest.raises(pccl.UnsupportedError, match="no multiplication of int64 by a factor"):
        solo.all_reduce(np.ones(4, np.int64), op)
    with pytest.raises(TypeError):
        solo.all_reduce(np.ones(4), 3)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        solo.operator("all_reduce", np.ones(4), op=op)  # type: ignore[arg-type]


@pytest.fixture
def solo() -> pccl.Communicator:
    return pccl.Communicator()

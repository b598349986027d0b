# SPDX-License-Identifier: Apache-2.0
"""Buffers of ctypes whose format contradicts the size of their elements, or has fields."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import pccl


class Sample(ctypes.LittleEndianStructure):
    _pack_ = 1
    _fields_ = (("weight", ctypes.c_double),)


class Either(ctypes.Union):
    _fields_ = (("number", ctypes.c_double), ("bits", ctypes.c_uint64))


class Small(ctypes.Union):
    _fields_ = (("number", ctypes.c_int16),)


def way_out(buffer: Any) -> str:
    """Return the advice for a buffer: from Python 3.12 on, the format of Sample has its field."""
    has_fields = memoryview(buffer).format.startswith("T{")
    return r"x\.view\('u1'\)" if has_fields else r"numpy\.frombuffer\(x, dtype\)"


@pytest.mark.parametrize("of", [Sample * 2, Either * 2, Small * 3, Sample])
@pytest.mark.parametrize("kind", ["all_reduce", "broadcast"])
def test_a_format_that_contradicts_the_size_is_refused(of: Any, kind: str) -> None:
    buffer = of()
    with pytest.raises(pccl.InvalidArgumentError, match=way_out(buffer)) as raised:
        getattr(pccl.Communicator(), kind)(buffer)
    assert len(str(raised.value).splitlines()) == 1


def test_what_to_pass_instead_works() -> None:
    samples = (Sample * 2)(Sample(1.5), Sample(2.5))
    comm = pccl.Communicator()
    comm.all_reduce(np.frombuffer(samples, np.float64))
    comm.broadcast(np.frombuffer(samples, "u1"))
    assert [each.weight for each in samples] == [1.5, 2.5]


@pytest.mark.parametrize(
    "of", [ctypes.c_int8, ctypes.c_uint16, ctypes.c_long, ctypes.c_double, ctypes.c_bool]
)
def test_numbers_of_ctypes_are_taken(of: Any) -> None:
    array = (of * 2)(1, 0)
    pccl.Communicator().all_reduce(array)
    assert list(array) == [1, 0]

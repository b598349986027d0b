# SPDX-License-Identifier: Apache-2.0
"""What a reduction over ranks must give, computed on one process from every rank's input.

Integers and bool are computed by numpy in their own type, which wraps as C does. Floating-point
types are computed in float64, half types in float32, as the library promises to accumulate them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
FLOATS = (*HALVES, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
    torch.uint64,
    torch.int64,
)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
MOVABLE = (*FLOATS, *COMPLEX, *INTEGERS, torch.bool, *FLOAT8)

ARITHMETIC_OPS = ("sum", "avg", "product", "min", "max")
BITWISE_OPS = ("band", "bor", "bxor")

_FUNCTIONS = {
    "sum": np.add,
    "avg": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
# On bool, as on the field {0, 1} with saturation: sum is "or", product is "and".
_BOOL_FUNCTIONS = _FUNCTIONS | {"sum": np.logical_or, "product": np.logical_and}


def ops_for(dtype: torch.dtype) -> tuple[str, ...]:
    """Return the reductions that a type has."""
    if dtype in COMPLEX:
        return ("sum", "avg")
    if dtype in FLOATS:
        return ARITHMETIC_OPS
    if dtype is torch.bool:
        return ("sum", "product", "min", "max", *BITWISE_OPS)
    return (*ARITHMETIC_OPS, *BITWISE_OPS)


def seeded_input(dtype: torch.dtype, count: int, rank: int) -> Tensor:
    """Return one rank's input: small values of both signs, where the type has signs."""
    generator = np.random.default_rng(1000 * rank + count)
    if dtype is torch.bool:
        return torch.from_numpy(generator.integers(0, 2, count).astype(bool))
    if dtype in INTEGERS:
        low = -9 if dtype.is_signed else 0
        kind = str(dtype).removeprefix("torch.")
        return torch.from_numpy(generator.integers(low, 10, count).astype(kind))
    real = torch.from_numpy(generator.uniform(-4, 4, count))
    if dtype in COMPLEX:
        return torch.complex(real, torch.from_numpy(generator.uniform(-4, 4, count))).to(dtype)
    return real.to(dtype)


def reduced(op: str, inputs: list[Tensor]) -> Tensor:
    """Reduce in the wide type; the result is in the wide type for floating point."""
    dtype = inputs[0].dtype
    functions = _BOOL_FUNCTIONS if dtype is torch.bool else _FUNCTIONS
    total = functools.reduce(functions[op], [_widened(tensor) for tensor in inputs])
    if op == "avg" and dtype in INTEGERS:
        total = np.trunc(total.astype(np.float64) / len(inputs)).astype(total.dtype)
    elif op == "avg":
        total = total / len(inputs)
    return torch.from_numpy(np.asarray(total))


def _widened(tensor: Tensor) -> np.ndarray:
    wide = {
        torch.float16: torch.float32,
        torch.bfloat16: torch.float32,
        torch.float32: torch.float64,
        torch.complex64: torch.complex128,
    }
    return tensor.detach().cpu().to(wide.get(tensor.dtype, tensor.dtype)).contiguous().numpy()


@dataclass(frozen=True)
class Slack:
    """How far a floating-point result may be from the wide one, by type."""

    relative: float
    of_magnitude: float  # times the sum of the inputs' magnitudes: cancellation keeps their error


_SLACK = {
    # One rounding of a float32 result, whose own error the second number covers.
    torch.float16: Slack(2**-11 * 1.001, 1e-6),
    torch.bfloat16: Slack(2**-8 * 1.001, 1e-6),
    torch.float32: Slack(1e-6, 1e-6),
    torch.float64: Slack(1e-15, 1e-15),
    torch.complex64: Slack(1e-6, 1e-6),
    torch.complex128: Slack(1e-15, 1e-15),
}


def assert_reduces(actual: Tensor, op: str, inputs: list[Tensor], what: str = "") -> None:
    """Fail unless ``actual`` is the reduction of ``inputs``: exact for integers and bool."""
    dtype = inputs[0].dtype
    label = f"{what} {op} of {dtype} x {inputs[0].numel()}"
    assert actual.dtype == dtype, label
    expected = reduced(op, inputs)
    if dtype not in _SLACK:
        assert np.array_equal(actual.numpy(), expected.numpy()), label
        return
    magnitude = magnitude_of(op, inputs)
    error = (actual.to(expected.dtype) - expected).abs()
    slack = _SLACK[dtype]
    allowed = slack.relative * expected.abs() + slack.of_magnitude * magnitude
    worst = (error - allowed).max().item() if error.numel() else 0.0
    assert worst <= 0, f"{label}: an error is {worst:.3g} larger than rounding explains"


def magnitude_of(op: str, inputs: list[Tensor]) -> Tensor:
    """Return what rounding errors of the wide type are relative to."""
    magnitudes = [tensor.abs() for tensor in inputs]
    return reduced("product" if op == "product" else "sum", magnitudes)

# SPDX-License-Identifier: Apache-2.0
"""The reference reductions themselves, against values worked out by hand."""

import pytest
import torch

from support.reference import INTEGERS, assert_reduces, ops_for, reduced, seeded_input


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("sum", [4, 1]),
        ("avg", [2, 0]),
        ("product", [-5, -12]),
        ("min", [-1, -3]),
        ("max", [5, 4]),
        ("band", [5, 4]),
        ("bor", [-1, -3]),
        ("bxor", [-6, -7]),
    ],
)
def test_reduces_signed_integers(op: str, expected: list[int]) -> None:
    inputs = [torch.tensor([5, 4], dtype=torch.int8), torch.tensor([-1, -3], dtype=torch.int8)]
    assert reduced(op, inputs).tolist() == expected


def test_averages_of_integers_round_towards_zero() -> None:
    inputs = [torch.tensor([-3, 3]), torch.tensor([0, 0])]
    assert reduced("avg", inputs).tolist() == [-1, 1]


def test_integers_wrap() -> None:
    inputs = [torch.tensor([200], dtype=torch.uint8)] * 2
    assert reduced("sum", inputs).tolist() == [144]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("sum", [False, True, True]),
        ("product", [False, False, True]),
        ("min", [False, False, True]),
        ("max", [False, True, True]),
        ("bxor", [False, True, False]),
    ],
)
def test_reduces_bool(op: str, expected: list[bool]) -> None:
    inputs = [torch.tensor([False, True, True]), torch.tensor([False, False, True])]
    assert reduced(op, inputs).tolist() == expected


def test_halves_are_accumulated_in_float32() -> None:
    """256 + 1 is 256 in bfloat16, so only a wide sum sees the ones."""
    inputs = [torch.tensor([value], dtype=torch.bfloat16) for value in (256.0, 1.0, 1.0, 1.0)]
    assert reduced("sum", inputs).item() == 259.0
    rounded_once = torch.tensor([260.0], dtype=torch.bfloat16)
    assert_reduces(rounded_once, "sum", inputs)
    rounded_each_time = torch.tensor([256.0], dtype=torch.bfloat16)
    with pytest.raises(AssertionError, match="larger than rounding explains"):
        assert_reduces(rounded_each_time, "sum", inputs)


def test_complex_numbers_add_and_average() -> None:
    inputs = [torch.tensor([1 + 2j]), torch.tensor([3 - 4j])]
    assert reduced("sum", inputs).item() == 4 - 2j
    assert reduced("avg", inputs).item() == 2 - 1j


def test_a_wrong_result_is_found_in_every_type() -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.bool, *INTEGERS):
        inputs = [seeded_input(dtype, 5, rank) for rank in range(2)]
        wrong = reduced("sum", inputs).to(dtype)
        wrong[2] = wrong[2].logical_not() if dtype is torch.bool else 77
        with pytest.raises(AssertionError, match="sum of"):
            assert_reduces(wrong, "sum", inputs)


def test_every_type_has_reductions() -> None:
    assert set(ops_for(torch.int32)) > set(ops_for(torch.float32)) > set(ops_for(torch.complex64))

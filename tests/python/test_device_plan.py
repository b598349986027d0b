# SPDX-License-Identifier: Apache-2.0
"""How GPUs would do a collective, as ``pccl.gpu.device_plan`` tells without one."""

from __future__ import annotations

import pytest

import pccl
from pccl import _core


def test_small_messages_go_by_ll_and_large_ones_do_not() -> None:
    assert pccl.gpu.device_plan("all_reduce", 1024, 8).protocol == "ll"
    large = pccl.gpu.device_plan("all_reduce", 64 << 20, 2)
    assert large.protocol != "ll"
    assert 1 <= large.blocks <= 128


@pytest.mark.parametrize("world_size", [-1, 0, 1, 9])
def test_groups_that_gpus_cannot_make_are_refused(world_size: int) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="2 to 8 work"):
        pccl.gpu.device_plan("all_reduce", 1024, world_size)


def test_former_names_of_protocols_are_taken_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="'engines' is now called 'copy_engine'"):
        plan = _core.DevicePlan(protocol="engines", blocks=4)
    assert plan.protocol == "copy_engine"

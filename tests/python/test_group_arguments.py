# SPDX-License-Identifier: Apache-2.0
"""Arguments that are no groups, although they are as false as None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pccl
from pccl import capsule, topology

if TYPE_CHECKING:
    from collections.abc import Callable

OF_TORCH = "a process group of torch.distributed, or None"
OF_BOTH = f"a pccl.Communicator, {OF_TORCH}"
TYPES_BY_CALL: dict[str, tuple[Callable[[Any], object], str]] = {
    "health": (pccl.health, OF_TORCH),
    "shrink": (pccl.shrink, OF_TORCH),
    "capsules": (capsule.capsules, OF_BOTH),
    "unload_capsule": (lambda group: capsule.unload_capsule("ring", group), OF_BOTH),
    "job": (topology.job, OF_BOTH),
    "explain": (
        lambda group: pccl.explain("all_reduce", 1024, group),
        "a pccl.Communicator, a pccl.topology.Job, a pccl.gpu.DeviceGroup, "
        f"a pccl.explanation.Gpus, {OF_TORCH}",
    ),
}


@pytest.mark.parametrize("call", TYPES_BY_CALL)
@pytest.mark.parametrize("group", [0, "", ()])
def test_a_false_value_is_no_default_group(call: str, group: object) -> None:
    function, types = TYPES_BY_CALL[call]
    with pytest.raises(TypeError) as error:
        function(group)
    assert str(error.value).endswith(f": it must be {types}")

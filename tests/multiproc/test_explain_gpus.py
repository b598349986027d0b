# SPDX-License-Identifier: Apache-2.0
"""``pccl.explain`` of CUDA tensors, where there are none yet, or cannot be any."""

from __future__ import annotations

import pytest

import pccl
from support.launch import run_ranks

pytestmark = pytest.mark.multiproc


def explain_before_they_are_connected(rank: int, world_size: int) -> None:
    with pytest.raises(pccl.UnavailableError, match="run a collective of CUDA tensors before"):
        pccl.explain("all_reduce", 4096, device="cuda")
    assert pccl.explain("all_reduce", 4096, device="cpu").ranks == world_size


def test_of_a_torch_group_whose_gpus_have_not_met() -> None:
    run_ranks(explain_before_they_are_connected, 2, backend="pccl")


def test_only_of_torch_groups_and_of_devices_that_there_are() -> None:
    with pccl.Communicator() as comm, pytest.raises(ValueError, match="process groups of torch"):
        pccl.explain("all_reduce", 4096, comm, device="cuda")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="it must be 'cpu' or 'cuda'"):
        pccl.explain("all_reduce", 4096, device="tpu")  # type: ignore[call-overload]

# SPDX-License-Identifier: Apache-2.0
"""What later releases of torch offer to every backend, and what pccl's groups make of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import torch.distributed as dist

from support.launch import not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("records its calls itself")]

RELEASE = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))


def from_release(*first: int) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        first > RELEASE, reason=f"torch {RELEASE} has it not: from {first} on"
    )


def recorded() -> list[dict[str, Any]]:
    from torch._C import _distributed_c10d

    record = json.loads(_distributed_c10d._dump_fr_trace_json(backend="pccl"))
    entries: list[dict[str, Any]] = record.get("entries", [])
    return entries


def torch_records_what_is_called(rank: int, world_size: int) -> None:
    dist.all_reduce(torch.ones(5))
    work = dist.broadcast(torch.ones(3, dtype=torch.int64), 0, async_op=True)
    assert work is not None
    work.wait()
    first, second = recorded()[-2:]
    assert first["profiling_name"] == "pccl:all_reduce"
    assert first["input_sizes"] == [[5]]
    # docs/reference/torch.md: when it was issued; nobody tells torch when it is done.
    assert (first["state"], first["retired"]) == ("scheduled", True)
    assert second["profiling_name"] == "pccl:broadcast"
    assert second["input_dtypes"] == ["Long"]


def what_is_not_offered_is_absent(rank: int, world_size: int) -> None:
    group = dist.group.WORLD
    assert group is not None
    assert not dist.distributed_c10d._supports_reconfigure()
    assert not group.supports_window
    with pytest.raises(RuntimeError, match="pccl does not support new_window"):
        group.new_window(None)
    value = torch.full((3,), rank + 1.0)
    dist.all_reduce(value)
    assert value.tolist() == [sum(range(1, world_size + 1))] * 3


@from_release(2, 15)
def test_the_flight_recorder_of_torch_has_the_calls() -> None:
    run_ranks(torch_records_what_is_called, 2)


@from_release(2, 15)
def test_the_flight_recorder_can_be_turned_off() -> None:
    run_ranks(nothing_is_recorded, 2, environment={"TORCH_FR_BUFFER_SIZE": "0"})


def nothing_is_recorded(rank: int, world_size: int) -> None:
    dist.all_reduce(torch.ones(5))
    assert recorded() == []


@from_release(2, 15)
def test_reconfigure_and_windows_are_unsupported() -> None:
    run_ranks(what_is_not_offered_is_absent, 2)

# SPDX-License-Identifier: Apache-2.0
"""What the tests of DeviceGroup on GPUs share."""

from __future__ import annotations

import time
from typing import Any

import torch
from tests.gpu import cases

from pccl import _core


def make_group(
    rank: int, world_size: int, store: Any, timeout: float = 60.0, name: str = "gpu"
) -> _core.DeviceGroup:
    return _core.DeviceGroup(
        rank=rank,
        world_size=world_size,
        rendezvous=torch.distributed.PrefixStore(name, store),
        device=torch.cuda.current_device(),
        timeout=timeout,
    )


def finish(rank: int, world_size: int, store: Any) -> None:
    """Keep every rank until all are through."""
    torch.cuda.synchronize()
    store.add("through", 1)
    while store.add("through", 0) < world_size:
        time.sleep(0.01)


def run_all(rank: int, world_size: int, store: Any, chosen: list[cases.Case]) -> list[Any]:
    group = make_group(rank, world_size, store)
    found = [cases.run_case(group, case) for case in chosen]
    finish(rank, world_size, store)
    return found


def agree(chosen: list[cases.Case], found: list[list[int]]) -> None:
    """All ranks have the same bits where the collective gives all the same."""
    for index, case in enumerate(chosen):
        if case.collective in ("all_reduce", "all_gather", "broadcast"):
            assert len({digests[index] for digests in found}) == 1, f"{case}: ranks differ"

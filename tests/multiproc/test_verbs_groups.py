# SPDX-License-Identifier: Apache-2.0
"""What groups do beside built-in collectives, over RDMA alone, on the fake libibverbs.

Tests of phases, of ``pccl status`` and of shrinking have RDMA among their transports.
"""

from __future__ import annotations

import ctypes
import os
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.distributed as dist

from support import fake_verbs
from support.launch import new_store, not_on_gloo, run_ranks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such thing")]
RANKS = 3


def loads_a_capsule(rank: int, world_size: int, store: str) -> list[str]:
    import pccl
    from pccl import schedule

    comm = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=store, timeout=60.0)
    made = schedule.generate("ring", "all_reduce", world_size)
    operator = comm.load(pccl.Capsule.of(made.renamed("mine")), "..")
    for count in (1, 3000, 200_000):
        x = np.arange(count) + rank
        comm.all_reduce(x)
        assert np.array_equal(x, world_size * np.arange(count) + sum(range(world_size)))
        y = np.arange(count) + rank
        operator.run(y, op="max")
        assert np.array_equal(y, np.arange(count) + world_size - 1)
    explained = pccl.explain("all_reduce", 8 * 3000, comm)
    comm.barrier()
    return [explained.chosen.algorithm, *(way.over for way in explained.ways)]


def test_a_loaded_capsule_runs(tmp_path: Path) -> None:
    results = run_ranks(
        loads_a_capsule,
        RANKS,
        backend=None,
        arguments=[f"file://{tmp_path}/store"],
        environment=fake_verbs.ranks_over("verbs", tmp_path / "fabric"),
    )
    for algorithm, *ways in results:
        assert algorithm == "mine"
        assert set(ways) == {"links"}


def calls_another(rank: int, _world_size: int) -> str:
    import pccl

    x = torch.ones(8)
    dist.all_reduce(x)
    with pytest.raises(pccl.MismatchError) as caught:
        dist.broadcast(x, 0) if rank == 1 else dist.all_reduce(x)
    return str(caught.value)


def test_ranks_that_call_different_operations_are_named(tmp_path: Path) -> None:
    environment = fake_verbs.ranks_over("verbs", tmp_path / "fabric")
    for message in run_ranks(calls_another, RANKS, environment=environment):
        assert re.search(r"rank 1\b.*broadcast|broadcast.*rank 1\b", message), message
        assert "all_reduce" in message


def sends_for_ever(rank: int, world_size: int, store: str) -> str:
    import pccl

    comm = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=store, timeout=5.0)
    comm.all_reduce(np.ones(8))
    ends = new_store()
    if rank == 1:
        fake = ctypes.CDLL(os.environ["PCCL_IBVERBS_LIBRARY"])
        held = fake_verbs.Rule(effect=fake_verbs.STALL, opcode=fake_verbs.WRITE_WITH_IMMEDIATE + 1)
        assert fake.fake_verbs_add_rule(ctypes.byref(held)) > 0
        comm.all_reduce(np.ones(8))  # for which this rank needs nothing but the data of rank 0
        ends.wait(["over"])
        return ""
    with pytest.raises(pccl.TimeoutError) as caught:
        comm.all_reduce(np.ones(8))
    ends.set("over", "")
    return str(caught.value)


def test_writes_that_a_device_repeats_without_end_are_a_timeout_that_names_the_rank(
    tmp_path: Path,
) -> None:
    message, _ = run_ranks(
        sends_for_ever,
        2,
        backend=None,
        arguments=[f"file://{tmp_path}/store"],
        environment=fake_verbs.ranks_over("verbs", tmp_path / "fabric"),
    )
    assert "rank 1" in message

# SPDX-License-Identifier: Apache-2.0
"""Timelines of process groups of torch."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import torch
import torch.distributed as dist

import pccl
from pccl import timeline
from pccl._internal import local_ranks
from pccl.bench.capsule_recording import Recorded
from pccl.bench.capsule_timeline import recorded
from pccl.bench.capsule_timeline_torch import record_rank
from support import algorithms
from support.launch import new_store, not_on_gloo, run_ranks

if TYPE_CHECKING:
    import pccl.lang as pl

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no timelines")]

RANKS = 3
RING = algorithms.ring.build("ring3", ranks=RANKS)


def record_a_ring(rank: int, world_size: int) -> tuple[str, Counter[tuple[int, int, int]], float]:
    import pccl

    options = pccl.Options(transports="tcp")
    dist.init_process_group(
        "pccl", store=new_store(), rank=rank, world_size=world_size, pg_options=options
    )
    pccl.capsule.load_capsule(RING, sizes="1B..")
    x = torch.ones(3000)
    dist.all_reduce(x)  # nobody looks
    timeline.record()
    dist.all_reduce(x)
    found = timeline.gather()
    assert x[0] == world_size**2
    assert found.ranks == world_size
    seen = Counter((step.rank, step.lane, step.index) for step in found.steps)
    return found.group, seen, found.clock_error


def test_a_process_group_records_every_step_of_every_rank() -> None:
    planned = {(step.rank, step.lane, step.step) for step in RING.schedule.steps}
    for group, seen, clock_error in run_ranks(record_a_ring, RANKS, backend=None):
        assert group == "group 0"
        assert seen == Counter(planned)
        assert clock_error == 0


def record_from_the_beginning(rank: int, world_size: int) -> list[set[int]]:
    options = pccl.Options(transports="tcp", timeline=1 << 10)
    dist.init_process_group(
        "pccl", store=new_store(), rank=rank, world_size=world_size, pg_options=options
    )
    dist.all_reduce(torch.ones(3000))  # nobody called record()
    calls = {step.call for step in timeline.gather().steps}
    dist.all_reduce(torch.ones(3000))  # gather() has ended it
    return [calls, {step.call for step in timeline.gather().steps}]


def test_a_process_group_records_from_its_beginning_on_request() -> None:
    for first, later in run_ranks(record_from_the_beginning, RANKS, backend=None):
        assert first
        assert not later


def refuse_too_many_steps(rank: int, world_size: int) -> str:
    options = pccl.Options(transports="tcp", timeline=1 << 40)
    with pytest.raises(pccl.InvalidArgumentError) as refused:
        dist.init_process_group(
            "pccl", store=new_store(), rank=rank, world_size=world_size, pg_options=options
        )
    return str(refused.value)


def test_a_timeline_of_too_many_steps_is_refused_when_the_group_is_made() -> None:
    for output in run_ranks(refuse_too_many_steps, 2, backend=None):
        assert "at most 4194304 are recorded" in output


@pytest.mark.parametrize(
    "algorithm", [algorithms.ring, algorithms.ring_reduce_scatter], ids=lambda each: each.collective
)
def test_a_capsule_is_recorded_by_process_groups(
    algorithm: pl.Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pccl capsule bench --device cuda` does it, here on CPUs, and over TCP."""
    monkeypatch.setenv("PCCL_TRANSPORTS", "tcp")
    capsule = algorithm.build("recorded", ranks=2)
    worker = functools.partial(record_rank, capsule.data, 1 << 16, "cpu")
    (found,) = local_ranks.run_ranks(worker, 2)
    assert isinstance(found, Recorded)
    planned = Counter((step.rank, step.lane, step.step) for step in capsule.schedule.steps)
    assert Counter((step.rank, step.lane, step.index) for step in found.timeline.steps) == planned
    assert found.us > 0
    assert found.recorded_us > 0


def test_without_a_gpu_there_is_no_timeline_of_gpus() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(pccl.UnsupportedError, match="torch finds no GPU on this machine"):
        recorded(algorithms.ring.build("ring2", ranks=2).data, 4096, "cuda")

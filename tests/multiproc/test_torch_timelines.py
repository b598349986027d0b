"""Timelines of process groups of torch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.distributed as dist

from pccl import timeline
from support import algorithms
from support.launch import new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no timelines")]

RANKS = 3
RING = algorithms.ring.build("ring3", ranks=RANKS)


def record_a_ring(rank: int, world_size: int) -> tuple[str, Counter[tuple[int, int, int]], float]:
    import pccl

    options = pccl.Options(transports="tcp")
    dist.init_process_group(
        "pccl", store=new_store(), rank=rank, world_size=world_size, pg_options=options
    )
    pccl.load_capsule(RING, sizes="1B..")
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

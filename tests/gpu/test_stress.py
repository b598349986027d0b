# SPDX-License-Identifier: Apache-2.0
"""Random collectives on two groups and three streams, every result checked on the GPU.

``PCCL_TEST_STRESS_SECONDS`` says for how long; 10 by default.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, RANKS, run_gpu_ranks

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

SECONDS = float(os.environ.get("PCCL_TEST_STRESS_SECONDS", "10"))
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "p2p"]


def one(kind: str, rank: int, n: int, numel: int, root: int, **how: Any) -> Any:
    """Start one operation; return its work, its result and what that should be."""
    base = [part(peer + numel, numel) for peer in range(n)]
    if kind == "all_reduce":
        x = base[rank].clone()
        return dist.all_reduce(x, **how), x, sum(base)
    if kind == "all_gather":
        x = torch.full((n * numel,), -1.0, device="cuda")
        return dist.all_gather_into_tensor(x, base[rank], **how), x, torch.cat(base)
    if kind == "reduce_scatter":
        x = torch.full((numel,), -1.0, device="cuda")
        return dist.reduce_scatter_tensor(x, base[rank].repeat(n), **how), x, sum(base)
    if kind == "all_to_all":
        x = torch.full((n * numel,), -1.0, device="cuda")
        sent = torch.cat([base[rank] + peer for peer in range(n)])
        return dist.all_to_all_single(x, sent, **how), x, torch.cat([b + rank for b in base])
    if kind == "broadcast":
        x = base[rank].clone()
        return dist.broadcast(x, root, **how), x, base[root]
    if kind == "reduce":
        x = base[rank].clone()
        return dist.reduce(x, root, **how), x, sum(base) if rank == root else base[rank]
    x = torch.full((numel,), -1.0, device="cuda")
    after, before = (rank + 1) % n, (rank - 1) % n
    group = how["group"]
    both = [dist.P2POp(dist.isend, base[rank], after, group)]
    both.append(dist.P2POp(dist.irecv, x, before, group))
    (work,) = dist.batch_isend_irecv(both)
    if not how["async_op"]:
        work.wait()
    return work, x, base[before]


def stress(rank: int, n: int, store: Any, seed: int) -> int:
    meet(rank, n, store)
    groups = [dist.group.WORLD, dist.new_group(list(range(n)), backend="pccl")]
    streams = [torch.cuda.Stream() for _ in range(3)]
    wrong = torch.zeros(3, device="cuda", dtype=torch.int64)
    rng = random.Random(seed)
    steps = 0
    end = time.monotonic() + SECONDS
    while True:
        for _ in range(40):
            steps += 1
            kind, at, asynchronous = rng.choice(KINDS), rng.randrange(3), rng.random() < 0.5
            numel, root = int(2 ** rng.uniform(0, 20)), rng.randrange(n)
            with torch.cuda.stream(streams[at]):
                how = {"group": rng.choice(groups), "async_op": asynchronous}
                work, x, want = one(kind, rank, n, numel, root, **how)
                if asynchronous:
                    work.wait()
                wrong[at] += (x != want).sum()
        torch.cuda.synchronize()
        assert wrong.sum().item() == 0, f"wrong elements by stream {wrong.tolist()}, step {steps}"
        # All ranks take as many steps.
        late = torch.tensor([float(time.monotonic() > end)])
        dist.all_reduce(late, op=dist.ReduceOp.MAX)
        if late.item():
            break
    dist.destroy_process_group()
    return steps


def test_random_operations_on_groups_and_streams() -> None:
    steps = run_gpu_ranks(RANKS, stress, 1, timeout=SECONDS + 120)
    assert len(set(steps)) == 1
    print(f"{steps[0]} operations in {SECONDS:.0f} s")


def fill_the_gpu(rank: int, n: int, store: Any) -> None:
    """Large kernels of many groups at once, which begin in another order on each rank."""
    meet(rank, n, store)
    groups = [dist.new_group(list(range(n)), backend="pccl") for _ in range(5)]
    streams = [torch.cuda.Stream() for _ in groups]
    wrong = torch.zeros(len(groups), device="cuda", dtype=torch.int64)
    rng, delays = random.Random(2), random.Random(rank)
    for _ in range(20):
        for at, (group, stream) in enumerate(zip(groups, streams, strict=True)):
            kind, numel = rng.choice(KINDS[:4]), int(2 ** rng.uniform(18, 22))
            with torch.cuda.stream(stream):
                torch.cuda._sleep(delays.randrange(1_000_000))
                _, x, want = one(kind, rank, n, numel, 0, group=group, async_op=False)
                wrong[at] += (x != want).sum()
    torch.cuda.synchronize()
    assert wrong.sum().item() == 0, f"wrong elements by group: {wrong.tolist()}"
    dist.destroy_process_group()


def test_many_groups_whose_kernels_fill_the_gpu() -> None:
    run_gpu_ranks(RANKS, fill_the_gpu, timeout=120)

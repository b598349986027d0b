# SPDX-License-Identifier: Apache-2.0
"""Every schedule that GPUs run, against references and as what torch.distributed runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu import cases
from tests.gpu.device_groups import agree, run_all
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, MOST_RANKS, RANKS, run_gpu_ranks

from pccl import schedule

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

COLLECTIVES = ["all_reduce", "reduce_scatter", "reduce", "all_gather", "all_to_all", "broadcast"]
EVERY_WAY = [(each, name) for each in COLLECTIVES for name in schedule.algorithms(each)]


@pytest.mark.parametrize("world_size", range(2, MOST_RANKS + 1))
def test_sizes_and_types(world_size: int) -> None:
    chosen = [
        cases.Case(collective, dtype, count, algorithm=algorithm, seed=count, root=count % 2)
        for collective, algorithm in EVERY_WAY
        for dtype, count in [
            (torch.int32, 1),
            (torch.float32, 515),
            (torch.int64, 65_536),
            (torch.bfloat16, 1_000_003),
        ]
    ]
    chosen += [
        cases.Case(
            collective,
            torch.int32,
            70_001,
            protocol=protocol,
            algorithm=name,
            in_place=True,
            offset=1,
            seed=3,
        )
        for collective, name in EVERY_WAY
        for protocol in ("ll", "direct")
    ]
    agree(chosen, run_gpu_ranks(world_size, run_all, chosen))


@pytest.mark.parametrize("world_size", sorted({3, RANKS}))
def test_operators_and_long_messages(world_size: int) -> None:
    """Many windows of the data; averages, which are divided behind the last hop."""
    reducing = [way for way in EVERY_WAY if way[0] in cases.REDUCING]
    chosen = [
        cases.Case(collective, dtype, 50_021, op=op, algorithm=algorithm, seed=5)
        for collective, algorithm in reducing
        for dtype in (torch.float64, torch.float16, torch.int16)
        for op in ("avg", "max", "product")
        if op != "avg" or dtype.is_floating_point  # no schedule averages integers on GPUs
    ]
    chosen += [
        cases.Case(collective, torch.int32, 20_000_003, algorithm=algorithm, seed=6)
        for collective, algorithm in EVERY_WAY
        if algorithm in ("ring", "pat", "double_binary_tree", "recursive_halving")
    ]
    agree(chosen, run_gpu_ranks(world_size, run_all, chosen))


def use_torch(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    for numel in (5, 4096, 3_000_001):
        parts = [part(each, numel) for each in range(world_size)]
        total = torch.stack(parts).sum(0)
        x = parts[rank].clone()
        dist.all_reduce(x)
        torch.testing.assert_close(x, total, rtol=0, atol=0)
        dist.all_reduce(x.copy_(parts[rank]), op=dist.ReduceOp.AVG)
        torch.testing.assert_close(x, total / world_size)
        gathered = torch.empty(world_size * numel, device="cuda")
        dist.all_gather_into_tensor(gathered, parts[rank])
        torch.testing.assert_close(gathered, torch.cat(parts), rtol=0, atol=0)
        block = torch.empty(numel, device="cuda")
        dist.reduce_scatter_tensor(block, gathered)
        torch.testing.assert_close(block, world_size * parts[rank], rtol=0, atol=0)
        many = [torch.full((7,), float(rank + i), device="cuda") for i in range(5)]
        dist.all_reduce_coalesced(many)
        for i, each in enumerate(many):
            wanted = float(sum(range(i, i + world_size)))
            torch.testing.assert_close(each, torch.full((7,), wanted, device="cuda"))
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("algorithm", ["ring", "pat"])
def test_torch_runs_the_schedules_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    requested = ",".join(f"{kind}={algorithm}" for kind in ("all_reduce", "all_gather"))
    monkeypatch.setenv("PCCL_ALGORITHM", f"{requested},reduce_scatter={algorithm}")
    run_gpu_ranks(RANKS, use_torch)

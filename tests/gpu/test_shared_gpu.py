# SPDX-License-Identifier: Apache-2.0
"""Ranks that share a GPU without MPS: through host memory, by copies that do not take turns."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, has_mps, run_gpu_ranks

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

# Around what two rows of a copy hold, odd ones, and where the driver no longer needs them.
LENGTHS = (1, 2, 3, 5, 1000, 32_767, 32_768, 32_769, 1_000_001)


def sums(rank: int, ranks: int, store: Any, peer_access: str | None) -> None:
    torch.cuda.set_device(0)
    for name in ("PCCL_GPU_PEER_ACCESS", "PCCL_GPU_HOST_KERNELS"):
        os.environ.pop(name, None)
    if peer_access is not None:
        os.environ["PCCL_GPU_PEER_ACCESS"] = peer_access
    meet(rank, ranks, store)
    for numel in LENGTHS:
        around = torch.full((numel + 2,), 7, dtype=torch.uint8, device="cuda")
        x = around[1:-1]
        x.copy_(part(rank, numel, torch.uint8))
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        wanted = torch.stack([part(each, numel, torch.uint8) for each in range(ranks)]).amax(0)
        torch.testing.assert_close(x, wanted, rtol=0, atol=0)
        assert around[0] == around[-1] == 7, "what lies beside the tensor"
    dist.destroy_process_group()


def test_they_go_through_host_memory(capfd: pytest.CaptureFixture[str]) -> None:
    if has_mps():
        pytest.skip("MPS runs kernels of the ranks side by side here")
    run_gpu_ranks(2, sums, None)
    assert "ranks 0 and 1 share a GPU without MPS" in capfd.readouterr().err


def test_under_mps_they_use_kernels(capfd: pytest.CaptureFixture[str]) -> None:
    if not has_mps():
        pytest.skip("no MPS here")
    run_gpu_ranks(2, sums, None)
    assert "share a GPU" not in capfd.readouterr().err


def test_a_rank_takes_turns_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    run_gpu_ranks(2, sums, "1")
    assert "share a GPU" not in capfd.readouterr().err

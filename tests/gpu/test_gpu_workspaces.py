# SPDX-License-Identifier: Apache-2.0
"""GPU memory that all ranks have, in the hands of kernels that are not ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.gpu.ranks import GPUS, RANKS, run_gpu_ranks

import pccl

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

NUMEL = 10_000_000


def meet(rank: int, world_size: int, store: Any) -> pccl.Communicator:
    return pccl.Communicator(
        rank=rank,
        world_size=world_size,
        rendezvous=torch.distributed.PrefixStore("workspaces", store),
        timeout=60.0,
    )


def own_gpu() -> str:
    return f"cuda:{torch.cuda.current_device()}"


def write_to_all(rank: int, world_size: int, store: Any) -> None:
    with meet(rank, world_size, store) as comm:
        space = comm.memory.allocate("space", world_size * NUMEL * 4, device=own_gpu())
        local = torch.from_dlpack(space.local).view(torch.float32).view(world_size, NUMEL)
        assert not local.any()
        comm.barrier()
        for peer in range(world_size):
            there = torch.from_dlpack(space.peer(peer)).view(torch.float32)
            there.view(world_size, NUMEL)[rank] = 10 * rank + peer
        torch.cuda.synchronize()
        comm.barrier()
        for sender in range(world_size):
            assert bool((local[sender] == 10 * sender + rank).all())
        assert torch.as_tensor(space.local, device="cuda").data_ptr() == space.local.address
        comm.barrier()
        space.release()
        assert bool((local[rank] == 11 * rank).all())  # an array of it lives on


def test_kernels_write_to_every_rank() -> None:
    run_gpu_ranks(RANKS, write_to_all)


def disagree(rank: int, world_size: int, store: Any) -> None:
    with meet(rank, world_size, store) as comm:
        with pytest.raises(pccl.MismatchError, match="do not allocate the same"):
            comm.memory.allocate("space", 64 * (rank + 1), device=own_gpu())
        wanted = own_gpu() if rank == 0 else "cuda:99"
        error: type[pccl.Error] = pccl.MismatchError if rank == 0 else pccl.InvalidArgumentError
        with pytest.raises(error, match="no such GPU"):
            comm.memory.allocate("space", 64, device=wanted)
        comm.memory.allocate("space", 64, device=own_gpu()).release()


def test_all_ranks_have_it_or_none() -> None:
    run_gpu_ranks(2, disagree)

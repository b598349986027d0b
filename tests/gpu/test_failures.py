# SPDX-License-Identifier: Apache-2.0
"""What survivors see when a rank dies, is aborted or does not come; all with CUDA tensors."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, RANKS, run_gpu_ranks

import pccl

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

LIMIT = 10.0  # seconds until every survivor knows


def reduce_until_it_fails(numel: int) -> None:
    x = torch.ones(numel, device="cuda")
    while True:
        dist.all_reduce(x.fill_(1))
        torch.cuda.synchronize()


def kill_one(rank: int, world_size: int, store: Any, numel: int) -> float:
    meet(rank, world_size, store)
    x = torch.ones(numel, device="cuda")
    for _ in range(20):
        dist.all_reduce(x.fill_(1))
    torch.cuda.synchronize()
    if rank == 1:
        dist.all_reduce(x)  # on its way when the rank dies
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(pccl.PeerLostError, match="rank 1"):
        reduce_until_it_fails(numel)
    spent = time.monotonic() - began
    dist.destroy_process_group()
    return spent


@pytest.mark.parametrize("numel", [1000, 50_000_000])
def test_survivors_of_a_killed_rank_raise_and_end(numel: int) -> None:
    spent = run_gpu_ranks(RANKS, kill_one, numel)
    assert spent.pop(1) is None
    assert all(each < LIMIT for each in spent), spent


def shrink_after_a_kill(rank: int, world_size: int, store: Any) -> None:
    meet(rank, world_size, store)
    x = torch.ones(1000, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == world_size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(pccl.PeerLostError):
        reduce_until_it_fails(1000)
    group = pccl.shrink(ranks_to_exclude=[world_size - 1])
    for numel in (1000, 3_000_000):
        x = part(rank, numel)
        dist.all_reduce(x, group=group)
        assert torch.equal(x, sum(part(peer, numel) for peer in range(world_size - 1)))
    torch.cuda.synchronize()
    dist.destroy_process_group()


def test_survivors_go_on_in_a_smaller_group() -> None:
    run_gpu_ranks(max(3, GPUS), shrink_after_a_kill)


def wait_for_all(world_size: int, store: Any) -> None:
    store.add("ended", 1)
    while store.add("ended", 0) < world_size:
        time.sleep(0.01)


def abort_one(rank: int, world_size: int, store: Any) -> float:
    meet(rank, world_size, store)
    x = torch.ones(1000, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    began = time.monotonic()
    if rank == 0:
        backend = dist.group.WORLD._get_backend(torch.device("cuda"))
        threading.Timer(1.0, backend.abort).start()
        dist.all_reduce(x)  # the others do not come
        torch.cuda.synchronize()
        with pytest.raises(pccl.Error, match="abort"):
            dist.all_reduce(x)
    spent = time.monotonic() - began
    wait_for_all(world_size, store)
    dist.destroy_process_group()
    return spent


def test_abort_frees_a_gpu_that_waits() -> None:
    spent = run_gpu_ranks(2, abort_one)
    assert all(each < LIMIT for each in spent), spent


def die_before_the_first(rank: int, world_size: int, store: Any) -> float:
    meet(rank, world_size, store)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(pccl.PeerLostError, match="rank 1"):
        dist.all_reduce(torch.ones(1000, device="cuda"))
    spent = time.monotonic() - began
    dist.destroy_process_group()
    return spent


def test_a_rank_that_died_before_its_gpu_met_the_others() -> None:
    spent = run_gpu_ranks(3, die_before_the_first)
    assert spent.pop(1) is None
    assert all(each < LIMIT for each in spent), spent


def stop_while_meeting(rank: int, world_size: int, store: Any, by: str) -> float:
    meet(rank, world_size, store)
    x = torch.ones(1000, device="cuda")
    began = time.monotonic()
    if rank == 0:
        backend = dist.group.WORLD._get_backend(torch.device("cuda"))
        stop = backend.abort if by == "abort" else lambda: os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(1.0, stop).start()
        error: type[BaseException] = pccl.Error if by == "abort" else KeyboardInterrupt
        with pytest.raises(error):
            dist.all_reduce(x)
        store.set("stopped", "")
    else:
        store.wait(["stopped"])
        why = "abort was called" if by == "abort" else "a signal interrupted this rank"
        with pytest.raises(pccl.PeerLostError, match=f"rank 0: {why}"):
            dist.all_reduce(x)
    spent = time.monotonic() - began
    wait_for_all(world_size, store)
    return spent


@pytest.mark.parametrize("by", ["abort", "signal"])
def test_what_waits_for_the_first_collective_can_be_stopped(by: str) -> None:
    spent = run_gpu_ranks(2, stop_while_meeting, by)
    assert all(each < LIMIT for each in spent), spent


def waits_in_the_record() -> list[dict[str, Any]]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        (group,) = (g for g in pccl.diagnostics.flight_record()["groups"] if g["device"] == "cuda")
        if group["waits"]:
            return group["waits"]
    return []


def look_at_a_hang(rank: int, world_size: int, store: Any, numel: int) -> None:
    meet(rank, world_size, store)
    x = torch.ones(numel, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == 1:
        store.wait(["looked"])
    dist.all_reduce(x)
    if rank == 0:
        (wait,) = waits_in_the_record()
        assert wait["peer"] == 1
        operation = f"all_reduce #2 (sum of {numel} float32)"
        assert wait["operation"] == operation
        here, late = pccl.health()
        assert (here.gpu_operation, here.gpu_waits_for) == (operation, (1,))
        assert (late.gpu_operation, late.gpu_waits_for) == ("", ())
        store.set("looked", "")
    torch.cuda.synchronize()
    assert torch.equal(x, torch.full_like(x, world_size**2))
    dist.destroy_process_group()


@pytest.mark.parametrize("numel", [1000, 30_000_000])
def test_the_record_has_the_peer_of_a_waiting_gpu(numel: int) -> None:
    run_gpu_ranks(2, look_at_a_hang, numel)

# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts: collectives and messages of CUDA tensors, which go through host memory.

The hosts are network namespaces of this machine. The same runs on CPU tensors, for machines without
a GPU.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet
from tests.gpu.ranks import GPUS, run_gpu_ranks
from tests.support.launch import new_store, run_ranks
from tests.support.two_hosts import two_hosts

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.two_hosts import Host

pytestmark = pytest.mark.multiproc
# Beyond 4 MiB, reductions and broadcasts of CUDA tensors travel in pieces.
SIZES = {"cpu": (1 << 10, (1 << 20) + 4), "cuda": (1 << 10, (5 << 20) + 4, 64 << 20)}
WARNING = "CUDA tensors go through host memory: rank {} is on another host than rank 0"
needs_gpu = pytest.mark.skipif(GPUS == 0, reason="needs a GPU, this machine has none")


@dataclass
class Round:
    """What a rank needs for operations on tensors of one size; all ranks know all tensors."""

    rank: int
    world_size: int
    device: str
    numel: int

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        seeds = [torch.Generator().manual_seed(rank) for rank in range(self.world_size)]
        return [torch.randn(self.numel, generator=seed) for seed in seeds]

    @cached_property
    def total(self) -> torch.Tensor:
        return sum(tensor.double() for tensor in self.tensors)

    @property
    def share(self) -> int:
        """How much of a tensor is for each rank, where all get the same."""
        return self.numel // self.world_size

    def mine(self) -> torch.Tensor:
        return self.tensors[self.rank].to(self.device, copy=True)

    def empty(self, numel: int) -> torch.Tensor:
        return torch.full((numel,), torch.nan, device=self.device)


def assert_is_sum(found: torch.Tensor, total: torch.Tensor) -> None:
    torch.testing.assert_close(found.cpu().double(), total, rtol=1e-5, atol=1e-5)


def all_reduce(on: Round) -> None:
    now, later = on.mine(), on.mine()
    work = dist.all_reduce(later, async_op=True)
    dist.all_reduce(now)
    work.wait()
    assert_is_sum(now, on.total)
    assert torch.equal(now, later)


def reduce(on: Round) -> None:
    x = on.mine()
    dist.reduce(x, on.world_size - 1)
    if on.rank == on.world_size - 1:
        assert_is_sum(x, on.total)


def reduce_scatter(on: Round) -> None:
    x = on.empty(on.share)
    dist.reduce_scatter_tensor(x, on.mine()[: on.share * on.world_size])
    assert_is_sum(x, on.total[on.rank * on.share :][: on.share])


def all_gather(on: Round) -> None:
    x = on.empty(on.share * on.world_size)
    dist.all_gather_into_tensor(x, on.mine()[: on.share])
    assert torch.equal(x.cpu(), torch.cat([tensor[: on.share] for tensor in on.tensors]))


def broadcast(on: Round) -> None:
    x = on.mine()
    dist.broadcast(x, on.world_size - 1)
    assert torch.equal(x.cpu(), on.tensors[-1])


def all_to_all(on: Round) -> None:
    x = on.empty(on.share * on.world_size)
    dist.all_to_all_single(x, on.mine()[: on.share * on.world_size])
    parts = [tensor[on.rank * on.share :][: on.share] for tensor in on.tensors]
    assert torch.equal(x.cpu(), torch.cat(parts))


def uneven_all_to_all(on: Round) -> None:
    """Lengths differ from pair to pair; some are nothing."""
    unit = on.share // 2
    lengths = [
        [unit * ((2 * source + to) % 3) for to in range(on.world_size)]
        for source in range(on.world_size)
    ]
    own = lengths[on.rank]
    gets = [of_source[on.rank] for of_source in lengths]
    x = on.empty(sum(gets))
    dist.all_to_all_single(x, on.mine()[: sum(own)], gets, own)
    parts = [
        tensor[sum(of_source[: on.rank]) :][: of_source[on.rank]]
        for tensor, of_source in zip(on.tensors, lengths, strict=True)
    ]
    assert torch.equal(x.cpu(), torch.cat(parts))


def messages(on: Round) -> None:
    """Each rank and one on the other host: first one way, then both at once."""
    half = on.world_size // 2
    partner = (on.rank + half) % on.world_size
    x = on.empty(on.numel)
    if on.rank < half:
        dist.send(on.mine(), partner)
    else:
        dist.recv(x, partner)
        assert torch.equal(x.cpu(), on.tensors[partner])
    y = on.empty(on.numel)
    both = [dist.P2POp(dist.isend, on.mine(), partner), dist.P2POp(dist.irecv, y, partner)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    assert torch.equal(y.cpu(), on.tensors[partner])


CHECKS: list[Callable[[Round], None]] = [
    all_reduce,
    reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    all_to_all,
    uneven_all_to_all,
    messages,
]


@contextlib.contextmanager
def kept_stderr() -> Iterator[list[str]]:
    """Give a list that holds, afterwards, what the library logged; it is logged all the same."""
    output: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as log, os.fdopen(os.dup(2), "wb") as usual:
        os.dup2(log.fileno(), 2)
        try:
            yield output
        finally:
            os.dup2(usual.fileno(), 2)
            log.seek(0)
            text = log.read()
            usual.write(text)
            output.append(text.decode())


def on_two_hosts(
    rank: int, world_size: int, store: Any, hosts: tuple[Host, Host], device: str
) -> str:
    hosts[2 * rank // world_size].enter()
    with kept_stderr() as output:
        meet(rank, world_size, store, timeout=120)
        assert len(pccl.topology.job().hosts) == 2
        for nbytes in SIZES[device]:
            on = Round(rank, world_size, device, nbytes // 4)
            for check in CHECKS:
                check(on)
        dist.barrier()
        dist.destroy_process_group()
    return output[0]


def on_cpus_of_two_hosts(rank: int, world_size: int, hosts: tuple[Host, Host]) -> str:
    return on_two_hosts(rank, world_size, new_store(), hosts, "cpu")


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])]
)
def test_collectives_and_messages_between_hosts(device: str, world_size: int) -> None:
    with contextlib.ExitStack() as stack:
        try:
            hosts = stack.enter_context(two_hosts())
        except OSError as error:
            pytest.skip(f"this machine lets us make no second host: {error}")
        if device == "cpu":
            output = run_ranks(on_cpus_of_two_hosts, world_size, arguments=(hosts,), backend=None)
        else:
            output = run_gpu_ranks(world_size, on_two_hosts, hosts, device)
    warning = WARNING.format(world_size // 2)
    assert [warning in each for each in output] == [device == "cuda"] * world_size, output

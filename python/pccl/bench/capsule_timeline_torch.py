# SPDX-License-Identifier: Apache-2.0
"""Timeline of a capsule on a process group of torch, mainly on GPUs."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from pccl import timeline
from pccl.bench.capsule_recording import record_call
from pccl.bench.capsules import TIMEOUT_S
from pccl.bench.cases import ROOT, Case
from pccl.capsule import Capsule, load_capsule
from pccl.errors import UnsupportedError
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_gpus", "record_rank"]


def check_gpus(collective: str) -> None:
    """Raise UnsupportedError without a GPU, or for a collective that torch cannot call."""
    if not torch.cuda.is_available():
        raise UnsupportedError("torch finds no GPU on this machine: leave --device out, for CPUs")
    if collective == "all_to_all":
        raise UnsupportedError(
            "an all_to_all capsule runs by name alone, which torch has no call for"
        )


def record_rank(
    data: bytes, size: int, device: str, rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    """Join a process group as one rank, load a capsule, and record a call.

    Parameters
    ----------
    data, size
        As for ``pccl.bench.capsule_timeline.recorded``.
    device
        Device of the buffers, ``"cuda"`` or ``"cpu"``.
    rank
        Rank of this process.
    rendezvous
        URL of a file that does not exist yet, ``file://...``.
    send
        Callback that receives the result, on rank 0 only.
    """
    capsule = Capsule.parse(data)
    if device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(
        "pccl",
        init_method=rendezvous,
        rank=rank,
        world_size=capsule.schedule.ranks,
        timeout=datetime.timedelta(seconds=TIMEOUT_S),
    )
    load_capsule(capsule, sizes="..")
    found = record_call(_TorchRecorder(capsule, size, device), capsule.name)
    if rank == 0:
        send(found)
    dist.barrier()
    dist.destroy_process_group()


class _TorchRecorder:
    def __init__(self, capsule: Capsule, size: int, device: str) -> None:
        self._collective = capsule.schedule.collective
        self._is_on_gpu = device == "cuda"
        case = Case.of_bytes(self._collective, capsule.schedule.ranks, size)
        self._out = torch.zeros(case.output_elements, device=device)
        self._x = self._out if case.is_in_place else torch.zeros(case.input_elements, device=device)
        self.rank = dist.get_rank()

    def call(self) -> None:
        if self._collective == "all_reduce":
            dist.all_reduce(self._out)
        elif self._collective == "broadcast":
            dist.broadcast(self._out, ROOT)
        elif self._collective == "all_gather":
            dist.all_gather_into_tensor(self._out, self._x)
        else:
            dist.reduce_scatter_tensor(self._out, self._x)
        if self._is_on_gpu:
            torch.cuda.synchronize()

    def barrier(self) -> None:
        dist.barrier()

    def slowest(self, times: list[float]) -> list[float]:
        slowest = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return list(map(float, slowest))

    def record(self, steps: int) -> None:
        timeline.record(steps=steps)

    def gather(self) -> timeline.Timeline:
        found = timeline.gather()
        own = [step for step in found.steps if step.is_on_gpu == self._is_on_gpu]
        return timeline.Timeline(
            found.group, found.ranks, Table(own), found.lost, found.clock_error
        )

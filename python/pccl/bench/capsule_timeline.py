# SPDX-License-Identifier: Apache-2.0
"""Recording of a capsule's steps between processes of this machine, and its overhead.

The ranks are communicators on CPUs, and members of a torch process group on GPUs.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Literal

from pccl import timeline, topology
from pccl._core import Capsule, Communicator
from pccl._internal.local_ranks import run_ranks
from pccl.bench.capsule_recording import Recorded, record_call
from pccl.bench.capsules import TIMEOUT_S, call_of
from pccl.bench.cases import Case
from pccl.bench.collectives import slowest
from pccl.simulator import Network, Speed, replay_capsule

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["recorded"]

GPU_STEP_S = 3e-6  # between fenced slots, see docs/reference/capsules.md


def recorded(data: bytes, size: int, device: Literal["cpu", "cuda"] = "cpu") -> Recorded:
    """Start the ranks of a capsule, and record one of its calls.

    Parameters
    ----------
    data
        Bytes of the capsule; ``pccl.bench.capsules`` must support its collective.
    size
        Bytes of the whole buffer.
    device
        Device of the buffers. Each rank has its own GPU where the machine has enough GPUs. The
        simulation assumes the bandwidth of a ring through the GPUs of this machine.

    Raises
    ------
    UnsupportedError
        Torch finds no GPU on this machine, or the GPUs cannot run the program.
    pccl.Error
        A rank failed.
    """
    capsule = Capsule.parse(data)
    ranks = capsule.schedule.ranks
    if device == "cuda":
        from pccl.bench.capsule_timeline_torch import check_gpus, record_rank

        check_gpus(capsule.schedule.collective)
        (found,) = run_ranks(functools.partial(record_rank, data, size, device), ranks)
        network = _network_of_gpus(ranks)
    else:
        (found,) = run_ranks(functools.partial(_record_rank, data, size), ranks)
        tcp = os.environ.get("PCCL_TRANSPORTS") == "tcp"
        network = Network.machine(ranks, transport="tcp" if tcp else "shm")
    simulated = replay_capsule(capsule, network, size)
    return Recorded(found.timeline.beside(simulated), found.us, found.recorded_us)


class _CommunicatorRecorder:
    """Recorder on a communicator, on CPUs."""

    def __init__(self, comm: Communicator, capsule: Capsule, size: int) -> None:
        case = Case.of_bytes(capsule.schedule.collective, comm.world_size, size)
        self._comm, self.rank = comm, comm.rank
        self._call = call_of(comm.load(capsule, "by name"), case, *case.buffers())

    def call(self) -> None:
        self._call()

    def barrier(self) -> None:
        self._comm.barrier()

    def slowest(self, times: list[float]) -> list[float]:
        return slowest(self._comm, times)

    def record(self, steps: int) -> None:
        self._comm.record_timeline(steps)

    def gather(self) -> timeline.Timeline:
        return timeline.gather(self._comm)


def _record_rank(
    data: bytes, size: int, rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    capsule = Capsule.parse(data)
    comm = Communicator(
        rank=rank,
        world_size=capsule.schedule.ranks,
        rendezvous=rendezvous,
        timeout=TIMEOUT_S,
        name="bench",
    )
    found = record_call(_CommunicatorRecorder(comm, capsule, size), capsule.schedule.name)
    if rank == 0:
        send(found)
    comm.barrier()


def _network_of_gpus(ranks: int) -> Network:
    ring = topology.detect().search("ring")
    return Network.switch(ranks, Speed(ring.bandwidth * 1e9, GPU_STEP_S, 0))

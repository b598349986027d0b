# SPDX-License-Identifier: Apache-2.0
"""Adapters for timelines: ``pccl.Communicator`` and groups of ``torch.distributed``."""

from __future__ import annotations

import pickle
import typing

import numpy as np

from pccl._core import Communicator

if typing.TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch.distributed import ProcessGroup

__all__ = ["CommunicatorRanks", "Ranks", "TorchRanks", "ranks_of"]

_TAG = (1 << 30) + 29  # tag of messages between ranks


class Ranks(typing.Protocol):
    """Interface to the ranks of a group, from one of its ranks."""

    @property
    def name(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...

    def record(self, steps: int) -> None:
        """Start recording, with a capacity of ``steps`` steps."""

    def take(self) -> tuple[list[tuple[typing.Any, ...]], int, int]:
        """Return the recording of this rank, as ``Communicator._take_timeline`` does."""

    def gather_all(self, value: object) -> list[typing.Any]:
        """Return the values of all ranks, in rank order."""

    def send(self, x: NDArray[np.int64], peer: int) -> None: ...

    def recv(self, x: NDArray[np.int64], peer: int) -> None: ...


def ranks_of(group: Communicator | ProcessGroup | None) -> Ranks:
    """Return the adapter of a group; None for the default group of ``torch.distributed``."""
    return CommunicatorRanks(group) if isinstance(group, Communicator) else TorchRanks(group)


class CommunicatorRanks:
    """Adapter of a communicator."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.name, self.rank, self.size = comm.name, comm.rank, comm.world_size
        self.record = comm.record_timeline
        self.take = comm._take_timeline

    def gather_all(self, value: object) -> list[typing.Any]:
        data = np.frombuffer(pickle.dumps(value), np.uint8)
        lengths = np.zeros(self.size, np.int64)
        self._comm.all_gather(lengths, np.array([data.size]))
        parts = [np.zeros(length, np.uint8) for length in lengths]
        self._comm.all_gather(parts, data)
        return [pickle.loads(part.tobytes()) for part in parts]

    def send(self, x: NDArray[np.int64], peer: int) -> None:
        self._comm.send(x, peer, _TAG)

    def recv(self, x: NDArray[np.int64], peer: int) -> None:
        self._comm.recv(x, peer, _TAG)


class TorchRanks:
    """Adapter of a process group that uses PCCL for CPU tensors."""

    def __init__(self, group: ProcessGroup | None) -> None:
        import torch
        import torch.distributed as dist

        from pccl.torch.backend import require_backend, whole_of

        backend = require_backend(group, "a timeline", ["a pccl.Communicator"])
        whole = whole_of(group)
        self._dist, self._group, self._tensor = dist, group, torch.from_numpy
        self.name = f"group {whole.group_name}"
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.record = backend.record_timeline
        self.take = backend._take_timeline

    def gather_all(self, value: object) -> list[typing.Any]:
        reported: list[typing.Any] = [None] * self.size
        self._dist.all_gather_object(reported, value, self._group)
        return reported

    def send(self, x: NDArray[np.int64], peer: int) -> None:
        self._dist.send(self._tensor(x), group=self._group, tag=_TAG, group_dst=peer)

    def recv(self, x: NDArray[np.int64], peer: int) -> None:
        self._dist.recv(self._tensor(x), group=self._group, tag=_TAG, group_src=peer)

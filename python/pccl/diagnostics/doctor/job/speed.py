# SPDX-License-Identifier: Apache-2.0
"""Speed of a group, measured by PCCL itself beside its own prediction."""

from __future__ import annotations

import dataclasses
import time
import typing

import numpy as np

if typing.TYPE_CHECKING:
    from pccl._core import Communicator

__all__ = ["Speed", "measure"]

SMALL, MIDDLE, LARGE = 8, 256 << 10, 4 << 20
_SMALL_CALLS = 10
_SMALL_BLOCKS = 4
_LARGE_CALLS = 3
_MOST_S = 0.02  # of a call of MIDDLE bytes, for calls of LARGE bytes to be made


@dataclasses.dataclass(frozen=True)
class Speed:
    """Times of an all_reduce: the shortest one of each length, in seconds."""

    small_s: float
    predicted_small_s: float
    nbytes: int
    large_s: float
    predicted_large_s: float
    ranks: int = 2

    @property
    def bytes_per_s(self) -> float:
        """Bytes that each rank sends in a second, and receives at the same time."""
        return self.nbytes * 2 * (self.ranks - 1) / self.ranks / self.large_s

    @property
    def predicted_bytes_per_s(self) -> float:
        """The prediction of ``bytes_per_s`` by the costs of this machine."""
        return self.nbytes * 2 * (self.ranks - 1) / self.ranks / self.predicted_large_s


def measure(comm: Communicator) -> Speed:
    """Measure a group; all of its ranks call this.

    Raises
    ------
    pccl.Error
        A call failed, or a rank did not take part in time.
    """
    small = np.zeros(SMALL, np.uint8)
    comm.all_reduce(small)
    small_s = min(_seconds(comm, small, _SMALL_CALLS) for _ in range(_SMALL_BLOCKS))
    middle = np.zeros(MIDDLE, np.uint8)
    slowest = np.array([_seconds(comm, middle, 1)])
    comm.all_reduce(slowest, op="max")
    nbytes, large_s = MIDDLE, float(slowest[0])
    if slowest[0] < _MOST_S:
        large = np.zeros(LARGE, np.uint8)
        nbytes, large_s = LARGE, min(_seconds(comm, large, 1) for _ in range(_LARGE_CALLS))
    return Speed(
        small_s=small_s,
        predicted_small_s=_predicted(comm, SMALL),
        nbytes=nbytes,
        large_s=large_s,
        predicted_large_s=_predicted(comm, nbytes),
        ranks=comm.world_size,
    )


def _seconds(comm: Communicator, buffer: typing.Any, calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        comm.all_reduce(buffer)
    return (time.perf_counter() - begun) / calls


def _predicted(comm: Communicator, nbytes: int) -> float:
    chosen = [way.seconds for way in comm.explain("all_reduce", nbytes) if way.is_chosen]
    return chosen[0] if chosen else float("inf")

"""Brings what ranks have recorded together, on rank 0's clock."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pccl.timeline_steps import MeasuredStep

if TYPE_CHECKING:
    from typing import Any

    from pccl._core import Communicator

__all__ = ["clock_name", "offset_and_error", "steps_of_all"]

# Messages between rank 0 and a rank of another clock; the quickest says most.
PINGS = 64
PING_TAG = (1 << 30) + 29


def steps_of_all(comm: Communicator) -> tuple[list[MeasuredStep], int, float]:
    """Return the steps of all ranks, how many were lost, and by how many seconds clocks are off."""
    steps, lost = comm._take_timeline()
    clocks = _all_told(comm, clock_name())
    offset, error = _compared(comm, clocks)
    told = _all_told(comm, (steps, lost, offset, error))
    moved = [(rank, step, shift) for rank, (some, _, shift, _) in enumerate(told) for step in some]
    first = min((step[10] - shift for _, step, shift in moved), default=0)
    return (
        [_named(rank, step, first + shift) for rank, step, shift in moved],
        sum(each[1] for each in told),
        max(each[3] for each in told) * 1e-9,
    )


def clock_name() -> str:
    """Return what processes have in common whose ``time.monotonic_ns`` is one clock."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    namespace = Path("/proc/self/ns/time")
    return f"{boot} {namespace.readlink()}" if namespace.exists() else boot


def offset_and_error(pings: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Return how far another clock is ahead of this one, and by how much that may be wrong.

    Parameters
    ----------
    pings
        Nanoseconds: this clock when a message left, the other one when it had come there and was
        answered, this one when the answer had come.
    """
    left, there, back = min(pings, key=lambda ping: ping[2] - ping[0])
    return there - (left + back) // 2, (back - left + 1) // 2


def _named(rank: int, step: tuple[Any, ...], zero: int) -> MeasuredStep:
    times = [(ns - zero) * 1e-9 for ns in step[10:]]
    return MeasuredStep(rank, *step[:10], *times)


def _compared(comm: Communicator, clocks: list[str]) -> tuple[int, int]:
    """Return offset and error of this rank's clock, as ``offset_and_error`` has them."""
    others = [rank for rank, clock in enumerate(clocks) if clock != clocks[0]]
    found = (0, 0)
    for rank in others:
        if comm.rank == rank:
            _answer(comm)
        elif comm.rank == 0:
            pings = [_ping(comm, rank) for _ in range(PINGS)]
            comm.send(np.array(offset_and_error(pings)), rank, PING_TAG)
    if comm.rank in others:
        told = np.zeros(2, np.int64)
        comm.recv(told, 0, PING_TAG)
        found = (int(told[0]), int(told[1]))
    return found


def _ping(comm: Communicator, rank: int) -> tuple[int, int, int]:
    there = np.zeros(1, np.int64)
    left = time.monotonic_ns()
    comm.send(there, rank, PING_TAG)
    comm.recv(there, rank, PING_TAG)
    return left, int(there[0]), time.monotonic_ns()


def _answer(comm: Communicator) -> None:
    here = np.zeros(1, np.int64)
    for _ in range(PINGS):
        comm.recv(here, 0, PING_TAG)
        here[0] = time.monotonic_ns()
        comm.send(here, 0, PING_TAG)


def _all_told(comm: Communicator, value: object) -> list[Any]:
    """Return what all ranks say, in their order."""
    data = np.frombuffer(pickle.dumps(value), np.uint8)
    lengths = np.zeros(comm.world_size, np.int64)
    comm.all_gather(lengths, np.array([data.size]))
    parts = [np.zeros(length, np.uint8) for length in lengths]
    comm.all_gather(parts, data)
    return [pickle.loads(part.tobytes()) for part in parts]

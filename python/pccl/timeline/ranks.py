# SPDX-License-Identifier: Apache-2.0
"""Collection of the recordings of all ranks, on the clock of rank 0."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pccl.timeline.steps import MeasuredStep

if TYPE_CHECKING:
    from typing import Any

    from pccl.timeline._group import Ranks

__all__ = ["clock_name", "offset_and_error", "steps_of_all"]

# Round trips between rank 0 and a rank of another clock; the shortest is the most precise.
PINGS = 64
FIRST_TIME = 11  # index of the first time among the fields of a step


def steps_of_all(ranks: Ranks) -> tuple[list[MeasuredStep], int, float]:
    """Return the steps of all ranks, the number of lost steps, and the clock error in seconds."""
    steps, lost, gpu_error = ranks.take()
    clocks = ranks.gather_all(clock_name())
    offset, error = _compared(ranks, clocks)
    reported = ranks.gather_all((steps, lost, offset, error + gpu_error))
    moved = [
        (rank, step, shift) for rank, (some, _, shift, _) in enumerate(reported) for step in some
    ]
    first = min((step[FIRST_TIME] - shift for _, step, shift in moved), default=0)
    return (
        [_named(rank, step, first + shift) for rank, step, shift in moved],
        sum(each[1] for each in reported),
        max(each[3] for each in reported) * 1e-9,
    )


def clock_name() -> str:
    """Return an identifier that processes with the same ``time.monotonic_ns`` clock share."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    namespace = Path("/proc/self/ns/time")
    return f"{boot} {namespace.readlink()}" if namespace.exists() else boot


def offset_and_error(pings: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Return the offset of another clock from this one, and its error, in nanoseconds.

    Parameters
    ----------
    pings
        Triples in nanoseconds: this clock at the departure of a message, the other clock at its
        arrival, and this clock at the arrival of the reply.
    """
    left, there, back = min(pings, key=lambda ping: ping[2] - ping[0])
    return there - (left + back) // 2, (back - left + 1) // 2


def _named(rank: int, step: tuple[Any, ...], zero: int) -> MeasuredStep:
    times = [(ns - zero) * 1e-9 for ns in step[FIRST_TIME:]]
    return MeasuredStep(rank, *step[:FIRST_TIME], *times)


def _compared(ranks: Ranks, clocks: list[str]) -> tuple[int, int]:
    """Return the offset and error of this rank's clock, as ``offset_and_error`` does."""
    others = [rank for rank, clock in enumerate(clocks) if clock != clocks[0]]
    found = (0, 0)
    for rank in others:
        if ranks.rank == rank:
            _answer(ranks)
        elif ranks.rank == 0:
            pings = [_ping(ranks, rank) for _ in range(PINGS)]
            ranks.send(np.array(offset_and_error(pings)), rank)
    if ranks.rank in others:
        reported = np.zeros(2, np.int64)
        ranks.recv(reported, 0)
        found = (int(reported[0]), int(reported[1]))
    return found


def _ping(ranks: Ranks, rank: int) -> tuple[int, int, int]:
    there = np.zeros(1, np.int64)
    left = time.monotonic_ns()
    ranks.send(there, rank)
    ranks.recv(there, rank)
    return left, int(there[0]), time.monotonic_ns()


def _answer(ranks: Ranks) -> None:
    here = np.zeros(1, np.int64)
    for _ in range(PINGS):
        ranks.recv(here, 0)
        here[0] = time.monotonic_ns()
        ranks.send(here, 0)

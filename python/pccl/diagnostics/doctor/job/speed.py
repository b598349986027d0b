# SPDX-License-Identifier: Apache-2.0
"""Speed of a group, measured by PCCL itself beside its own prediction."""

from __future__ import annotations

import dataclasses
import re
import time
import typing
from pathlib import Path

import numpy as np

if typing.TYPE_CHECKING:
    from pccl._core import Communicator

__all__ = ["Speed", "measure", "tcp_bytes_per_s"]

SMALL, MIDDLE, LARGE = 8, 256 << 10, 2 << 20
_SMALL_CALLS = 5
_SMALL_BLOCKS = 5
_LARGE_CALLS = 2
_ATTEMPTS = 3
_PAUSE_S = 0.05
_MOST_S = 0.02  # of a call of MIDDLE bytes, for calls of LARGE bytes to be made


@dataclasses.dataclass(frozen=True)
class Speed:
    """Times of an all_reduce: the shortest one of each length, in seconds.

    ``waited`` is the part of the time of long calls in which ranks waited for a core: their sum, as
    a rank sleeps while it waits for another one that has no core.
    """

    small_s: float
    predicted_small_s: float
    nbytes: int
    large_s: float
    predicted_large_s: float
    ranks: int = 2
    waited: float = 0.0

    @property
    def bytes_per_s(self) -> float:
        """Bytes that each rank sends in a second, and receives at the same time."""
        return self.nbytes * 2 * (self.ranks - 1) / self.ranks / self.large_s

    @property
    def predicted_bytes_per_s(self) -> float:
        """The prediction of ``bytes_per_s`` by the costs of this machine."""
        return self.nbytes * 2 * (self.ranks - 1) / self.ranks / self.predicted_large_s


def tcp_bytes_per_s() -> float:
    """Return the bytes that two ranks can exchange over TCP, by the costs of this machine.

    Each byte is sent, received and reduced.
    """
    from pccl import _core

    _, lines = _core.machine_costs()
    found = re.search(r"^tcp_byte: ([\d.e+-]+) ns", "\n".join(lines), re.MULTILINE)
    return 1e9 / (3 * float(found[1])) if found else float("inf")


def measure(comm: Communicator, aim: float) -> Speed:
    """Measure a group; all of its ranks call this.

    Parameters
    ----------
    comm
        The group.
    aim
        Bytes a second below which long calls are measured again, twice at most: another process
        may have disturbed them.

    Raises
    ------
    pccl.Error
        A call failed, or a rank did not take part in time.
    """
    small = np.zeros(SMALL, np.uint8)
    comm.all_reduce(small)
    small_s = min(_seconds(comm, small, _SMALL_CALLS) for _ in range(_SMALL_BLOCKS))
    nbytes, large_s, waited = _measure_long_calls(comm, aim)
    return Speed(
        small_s=small_s,
        predicted_small_s=_predicted(comm, SMALL),
        nbytes=nbytes,
        large_s=large_s,
        predicted_large_s=_predicted(comm, nbytes),
        ranks=comm.world_size,
        waited=waited,
    )


def _measure_long_calls(comm: Communicator, aim: float) -> tuple[int, float, float]:
    """Return a number of bytes, the seconds of a call, and the part that a rank waited.

    All ranks have equal values.
    """
    begun, waited_s = time.perf_counter(), _waited_s()
    common_aim = _agreed(comm, aim, "min")
    nbytes, best_s, waited = MIDDLE, float("inf"), 0.0
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S)
        buffer = np.zeros(nbytes, np.uint8)
        best_s = min(best_s, _shortest(comm, buffer))
        if nbytes == MIDDLE and best_s < _MOST_S:
            nbytes, best_s = LARGE, _shortest(comm, np.zeros(LARGE, np.uint8))
        share = (_waited_s() - waited_s) / (time.perf_counter() - begun)
        waited = min(_agreed(comm, share, "sum"), 1.0)
        # Less is expected of ranks without a core, and more calls would keep others from theirs.
        if nbytes >= common_aim * best_s * (1 - waited):
            break
    return nbytes, best_s, waited


def _waited_s() -> float:
    """Return how long this thread was ready to run and had no core, in seconds."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):  # a kernel without these figures
        return 0.0


def _shortest(comm: Communicator, buffer: typing.Any) -> float:
    return _agreed(comm, min(_seconds(comm, buffer, 1) for _ in range(_LARGE_CALLS)), "max")


def _agreed(comm: Communicator, value: float, op: typing.Literal["min", "max", "sum"]) -> float:
    agreed = np.array([value])
    comm.all_reduce(agreed, op=op)
    return float(agreed[0])


def _seconds(comm: Communicator, buffer: typing.Any, calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        comm.all_reduce(buffer)
    return (time.perf_counter() - begun) / calls


def _predicted(comm: Communicator, nbytes: int) -> float:
    chosen = [way.seconds for way in comm.explain("all_reduce", nbytes) if way.is_chosen]
    return chosen[0] if chosen else float("inf")

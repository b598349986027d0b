"""When the steps of a capsule happen, between processes of this machine, and what looking costs."""

from __future__ import annotations

import functools
import os
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pccl import timeline
from pccl._core import Capsule, Communicator
from pccl.bench.capsules import TIMEOUT_S, call_of
from pccl.bench.cases import Case, time_calls
from pccl.bench.collectives import WARM_UP_CALLS, slowest
from pccl.local_ranks import run_ranks
from pccl.simulator import Network, replay_capsule

if TYPE_CHECKING:
    from collections.abc import Callable

    from pccl.bench.cases import Call

__all__ = ["Recorded", "recorded"]

TURNS = 30
CALLS = 10  # of a turn
ROOM = 1 << 17


@dataclass(frozen=True)
class Recorded:
    """One call of a capsule.

    Attributes
    ----------
    timeline
        Of the median one of ten calls, with its simulation on this machine.
    us, recorded_us
        Microseconds of a call while nothing is recorded, and while steps are: of the slowest rank,
        medians of the best of ten.
    """

    timeline: timeline.Timeline
    us: float
    recorded_us: float

    @property
    def cost(self) -> float:
        """By how much of its time recording makes a call longer; less than 0 is noise."""
        return self.recorded_us / self.us - 1


def recorded(data: bytes, size: int) -> Recorded:
    """Start as many ranks as a capsule is for, and record a call of it.

    Parameters
    ----------
    data
        The capsule's bytes, of a collective that ``pccl.bench.capsules`` measures.
    size
        Bytes of the whole buffer.

    Raises
    ------
    pccl.Error
        A rank failed.
    """
    capsule = Capsule.parse(data)
    ranks = capsule.schedule.ranks
    (found,) = run_ranks(functools.partial(_worker, data, size), ranks)
    transport: Literal["shm", "tcp"] = (
        "tcp" if os.environ.get("PCCL_TRANSPORTS") == "tcp" else "shm"
    )
    network = Network.machine(ranks, transport=transport)
    simulated = replay_capsule(capsule, network, size)
    return Recorded(found.timeline.beside(simulated), found.us, found.recorded_us)


def _worker(
    data: bytes, size: int, rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    capsule = Capsule.parse(data)
    ranks, collective = capsule.schedule.ranks, capsule.schedule.collective
    comm = Communicator(
        rank=rank, world_size=ranks, rendezvous=rendezvous, timeout=TIMEOUT_S, name="bench"
    )
    case = Case.of_bytes(collective, ranks, size)
    call = call_of(comm.load(capsule, "by name"), case, *case.buffers())
    time_calls(call, comm.barrier, WARM_UP_CALLS)
    us, recorded_us = _cost(comm, call)
    comm.record_timeline(ROOM)
    time_calls(call, comm.barrier, CALLS)
    found = timeline.gather(comm)
    if rank == 0:
        send(Recorded(_usual_call(found), us, recorded_us))
    comm.barrier()


def _usual_call(found: timeline.Timeline) -> timeline.Timeline:
    """Return the call that took neither longest nor shortest, of those that are whole."""
    steps = Counter(step.call for step in found.steps)
    most = max(steps.values())
    calls = [found.of_call(call) for call, count in steps.items() if count == most]
    return sorted(calls, key=lambda call: call.seconds)[len(calls) // 2]


def _cost(comm: Communicator, call: Call) -> tuple[float, float]:
    """Return microseconds without and with recording, turn and turn about."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * TURNS):
        records = bool(turn % 2)
        comm.record_timeline(ROOM if records else 0)
        times[records].append(min(slowest(comm, time_calls(call, comm.barrier, CALLS))))
    comm.record_timeline(0)
    off, on = (statistics.median(times[records]) * 1e6 for records in (False, True))
    return off, on

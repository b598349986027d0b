# SPDX-License-Identifier: Apache-2.0
"""Meeting of the ranks of a job, by its launcher."""

from __future__ import annotations

import dataclasses
import typing

from pccl import _core
from pccl.diagnostics.doctor.finding import Finding, error
from pccl.diagnostics.doctor.job.exchange import Exchange
from pccl.launchers import meeting as launcher_meeting
from pccl.launchers.detection import detect

if typing.TYPE_CHECKING:
    from pccl.errors import Error

__all__ = ["Meeting", "failed", "is_in_job", "meet"]


@dataclasses.dataclass(frozen=True)
class Meeting:
    """A rank of a job, and the exchange that all ranks share."""

    rank: int
    size: int
    exchange: Exchange


class _TorchStore:
    """The store of torchrun's agent, as an `Exchange` uses it."""

    def __init__(self, store: typing.Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def look_up(self, key: str) -> bytes | None:
        return bytes(self._store.get(key)) if self._store.check([key]) else None

    def add(self, key: str, delta: int) -> int:
        return int(self._store.add(key, delta))


def is_in_job() -> bool:
    """Return whether a launcher started this process together with others."""
    launcher = detect().require_meeting()
    return launcher is not None and launcher.size > 1


def meet(timeout: float) -> Meeting:
    """Meet the other ranks at the place of ``rendezvous="auto"``.

    Raises
    ------
    pccl.Error
        A variable is missing or wrong, or the store does not answer in time.
    """
    rank, size, rendezvous, _ = launcher_meeting.resolve(launcher_meeting.AUTO, None, None)
    assert rendezvous is not None
    where = launcher_meeting.meeting_point(rendezvous, timeout)
    store: typing.Any
    if isinstance(where, str):
        store = _core._RendezvousStore(where, rank == 0, timeout)
    elif isinstance(where, tuple):
        store = _core._RendezvousStore.join_published(*where, timeout)
    else:
        store = _TorchStore(where)
    return Meeting(rank, size, Exchange(store, f"doctor/{launcher_meeting.attempt()}"))


def failed(failure: Error) -> Finding:
    """Return the finding that a rank does not reach the others."""
    return error(
        "job.meeting",
        f"this rank does not reach the store of the job: {' '.join(str(failure).split())}",
        "let TCP to that store (MASTER_ADDR and MASTER_PORT, if they are set) pass the firewall of"
        " rank 0's host, and start rank 0 there",
    )

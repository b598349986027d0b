# SPDX-License-Identifier: Apache-2.0
"""Transfers in flight, and plans of many blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pccl import _core
from pccl._internal.arguments import require
from pccl.errors import InvalidArgumentError
from pccl.former_names import method_under_former_name
from pccl.p2p.memory import Memory, RemoteMemory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from pccl.p2p.memory import LocalSlice, RemoteSlice

__all__ = ["Blocks", "Plan", "Work", "WorkStats", "indices_of", "whole_plan"]

#: Rows of offset and length, or (base, length, stride, count).
Blocks: TypeAlias = "NDArray[Any] | tuple[int, int, int, int]"

_STRIDED = 4  # numbers in a strided description


@dataclass(frozen=True)
class WorkStats:
    """Statistics of a transfer."""

    #: Requested bytes, their blocks, and the pieces that were transferred for these.
    nbytes: int
    blocks: int
    pieces: int
    #: Seconds from the start until now, or until the end.
    seconds: float
    #: ``"shm, mapped"``, ``"shm, by the kernel"``, ``"shm, by CUDA IPC"``, ``"shm, through pinned
    #: memory"``, ``"shm, by messages"``, ``"tcp, by messages"``; empty if not connected.
    path: str
    #: Reasons against a faster path; empty if there is no faster path.
    reasons: str
    #: Lanes that the connection has for large transfers over TCP; 0 by other paths.
    lanes: int
    #: Reason why the connection has no more lanes; empty if it could not have more.
    lane_reason: str


class Work:
    """One-sided transfer. It continues if this object is dropped."""

    def __init__(self, core: _core._P2pWork) -> None:
        """Wrap an object that a session created."""
        self._core = core

    def done(self) -> bool:
        """Return whether the transfer has ended; makes some progress if it has not.

        Raises
        ------
        PeerLostError, UnavailableError, AbortedError
            The transfer has failed, as for ``wait()``.
        """
        return self._core.done()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the transfer has ended; raise its error if it failed.

        Parameters
        ----------
        timeout
            Maximum seconds to wait; None: no limit. The transfer continues after a timeout.

        Raises
        ------
        TimeoutError
            ``timeout`` expired; the transfer continues.
        PeerLostError
            The peer has exited, or no connection was established within ``connect_timeout``.
        UnavailableError
            The peer has ended the registration, or has restarted as another incarnation.
        AbortedError
            The transfer was cancelled, or one of the two sessions closed.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Cancel the parts that have not started yet, without blocking.

        The transfer ends soon, with :class:`~pccl.AbortedError` unless it was already complete; its
        memory must not be reused before. Its notification is not delivered.
        """
        self._core.release()

    release = method_under_former_name("release", cancel)

    def stats(self) -> WorkStats:
        """Return the bytes, the seconds, the path, and the reasons for the path."""
        return WorkStats(**self._core.stats())


class Plan:
    """Pairs of blocks of a local and a remote memory, from ``Session.prepare()``."""

    def __init__(
        self, local: Memory, local_blocks: Blocks, remote: RemoteMemory, remote_blocks: Blocks
    ) -> None:
        """Check all blocks; see ``Session.prepare()``."""
        require(local, Memory, "local", "a pccl.p2p.Memory")
        require(remote, RemoteMemory, "remote", "a pccl.p2p.RemoteMemory")
        self._core = _core._P2pPlan(
            local._core, _checked(local_blocks), remote._core, _checked(remote_blocks)
        )
        self._device = local.device

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._core)

    @property
    def nbytes(self) -> int:
        """The total bytes of all blocks."""
        return self._core.nbytes

    @property
    def device(self) -> str:
        """The device of the local memory: ``"cpu"`` or ``"cuda:1"``."""
        return self._device


def _checked(blocks: Blocks) -> Blocks:
    if isinstance(blocks, tuple):
        if len(blocks) == _STRIDED and all(isinstance(n, int) and n >= 0 for n in blocks):
            return blocks
        raise InvalidArgumentError(
            f"strided blocks are (base, length, stride, count), at least 0 each, not {blocks}"
        )
    rows = np.asarray(blocks)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise InvalidArgumentError(
            "blocks are an array of integers of shape (n, 2), offset and length, "
            f"not {rows.dtype} of shape {rows.shape}"
        )
    if rows.dtype.kind == "i" and rows.size and rows.min() < 0:
        raise InvalidArgumentError(f"offsets and lengths are at least 0, not {rows.min()}")
    return np.ascontiguousarray(rows, dtype=np.uint64)


def whole_plan(here: LocalSlice, there: RemoteSlice) -> Plan:
    """Return the plan of one block, of equal length on both sides."""
    one = (here.nbytes, 0, 1)
    return Plan(here.memory, (here.offset, *one), there.memory, (there.offset, *one))


def indices_of(
    indices: Sequence[int] | NDArray[Any] | None, plan: Plan
) -> NDArray[np.uint32] | None:
    """Return the checked numbers of blocks of ``plan``; None: all blocks."""
    if indices is None:
        return None
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise InvalidArgumentError("indices are a list of one block or more, by their numbers")
    if chosen.min() < 0 or chosen.max() >= len(plan):
        raise InvalidArgumentError(f"indices of a plan of {len(plan)} blocks are below that")
    return np.ascontiguousarray(chosen, dtype=np.uint32)

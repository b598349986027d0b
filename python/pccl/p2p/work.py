# SPDX-License-Identifier: Apache-2.0
"""Transfers that are under way, and plans of many blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pccl import _core
from pccl.arguments import require
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

_STRIDED = 4  # numbers


@dataclass(frozen=True)
class WorkStats:
    """What became of a transfer so far."""

    #: Bytes asked for, in how many blocks, and as how many pieces these have gone.
    nbytes: int
    blocks: int
    pieces: int
    #: From its begin until now, or until its end.
    seconds: float
    #: ``"shm, mapped"``, ``"shm, by the kernel"``, ``"shm, by CUDA IPC"``, ``"shm, through pinned
    #: memory"``, ``"shm, by messages"``, ``"tcp, by messages"``; empty: not connected.
    path: str
    #: Why not by a faster path; empty where there is none.
    reasons: str


class Work:
    """One transfer. It goes on when this object is dropped."""

    def __init__(self, core: _core._P2pWork) -> None:
        """Take what a session made."""
        self._core = core

    def done(self) -> bool:
        """Tell whether the transfer has ended, and go on with it for a moment if not.

        Raises
        ------
        PeerLostError, UnavailableError, AbortedError
            It has failed, as ``wait()`` tells.
        """
        return self._core.done()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the transfer has ended, and raise if it failed.

        Parameters
        ----------
        timeout
            Seconds to wait at most. The transfer goes on if they pass.

        Raises
        ------
        TimeoutError
            ``timeout`` passed, and the transfer goes on.
        PeerLostError
            The peer has gone, or was not connected in ``connect_timeout``.
        UnavailableError
            The peer has ended the registration, or come back as another incarnation.
        AbortedError
            The transfer was given up, or one of the two sessions closed.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Give up what is not on its way yet, and return at once.

        The transfer ends soon, with :class:`~pccl.AbortedError` unless all had been done, and only
        then is its memory free. Its notification does not come.
        """
        self._core.release()

    release = method_under_former_name("release", cancel)

    def stats(self) -> WorkStats:
        """Return bytes, seconds, and the path that was taken, and why."""
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
        """Count the blocks."""
        return len(self._core)

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return self._core.nbytes

    @property
    def device(self) -> str:
        """Where the local memory is: ``"cpu"`` or ``"cuda:1"``."""
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
    """Return the plan of one block, of as many bytes on both sides."""
    one = (here.nbytes, 0, 1)
    return Plan(here.memory, (here.offset, *one), there.memory, (there.offset, *one))


def indices_of(
    indices: Sequence[int] | NDArray[Any] | None, plan: Plan
) -> NDArray[np.uint32] | None:
    """Return which blocks of ``plan`` are meant, checked; None: all."""
    if indices is None:
        return None
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise InvalidArgumentError("indices are a list of one block or more, by their numbers")
    if chosen.min() < 0 or chosen.max() >= len(plan):
        raise InvalidArgumentError(f"indices of a plan of {len(plan)} blocks are below that")
    return np.ascontiguousarray(chosen, dtype=np.uint32)

# SPDX-License-Identifier: Apache-2.0
"""Exchange through the key-value store of a launcher: put, fence, get."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import typing

from pccl.errors import Error
from pccl.errors import TimeoutError as PcclTimeoutError
from pccl.launchers import mpi_library

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KeyValueExchange", "KeyValueStore"]

KEY = "pccl-rendezvous"
_CLOSE_S = 5.0


class KeyValueStore(typing.Protocol):
    """Key-value store of one job, whose entries are visible to all ranks after a fence.

    Every function has a deadline of ``time.monotonic()``, at which it raises ``pccl.TimeoutError``.
    """

    def put(self, key: str, value: str, deadline: float) -> None:
        """Set a key; the other ranks see it after the fence."""

    def fence(self, deadline: float) -> None:
        """Wait until all ranks of the job have called this function."""

    def get(self, key: str, deadline: float) -> str:
        """Return the value that a rank has put before the fence."""

    def close(self, deadline: float) -> None:
        """End the use of the store by this process."""


class KeyValueExchange:
    """Exchange that opens the store of a launcher for one text.

    A PMI session cannot be opened again, and mpiexec ends the job of a process that ends with an
    open one. So it stays open for an MPI library, which continues it by its own MPI_Init and ends
    it by MPI_Finalize; without MPI, it is closed at exit. A launcher that counts sessions, as with
    PMIx, permits one of our own, which is closed at once.
    """

    def __init__(self, connect: Callable[[float], KeyValueStore], *, is_own: bool = False) -> None:
        self._connect = connect
        self._is_own = is_own

    def share(self, text: str | None, deadline: float) -> str:
        """Return the text of rank 0, which puts it before the fence."""
        store = self._connect(deadline)
        if not self._is_own:
            atexit.register(_leave, store, os.getpid())
        try:
            if text is not None:
                store.put(KEY, text, deadline)
            _fence(store, deadline)
            return store.get(KEY, deadline)
        finally:
            if self._is_own:
                _close(store)


def _fence(store: KeyValueStore, deadline: float) -> None:
    try:
        store.fence(deadline)
    except PcclTimeoutError as late:
        raise PcclTimeoutError(
            f"not every rank of the job has come to this exchange in time ({late}); does each of "
            "them create the group?"
        ) from None


def _leave(store: KeyValueStore, process: int) -> None:
    """Close the session of this process, unless an MPI library has taken it."""
    if os.getpid() == process and not mpi_library.has_been_initialized():
        _close(store)


def _close(store: KeyValueStore) -> None:
    with contextlib.suppress(Error):
        store.close(time.monotonic() + _CLOSE_S)

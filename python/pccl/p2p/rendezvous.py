# SPDX-License-Identifier: Apache-2.0
"""The library's own rendezvous store as a store of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl import _core
from pccl.p2p.one_process import of_one_process

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["RendezvousStore"]


@of_one_process
class RendezvousStore:
    """Keys in the store by which ranks of PCCL find each other: a file, or a server in a process.

    It has no leases: keys outlive their process. A value has at most 64 KiB, which are the entry of
    a session with some hundred memories. All methods may be called from every thread.
    """

    def __init__(
        self,
        url: str,
        *,
        host: bool = False,
        prefix: str = "pccl/p2p/",
        timeout: float | timedelta = 10.0,
    ) -> None:
        """Make a store, or join it.

        Parameters
        ----------
        url
            ``"tcp://host:port"``, or ``"file:///path"`` of a file that all processes see.
        host
            True in one process, which serves ``tcp://`` until it ends, or makes the file, which
            must not exist before. The others wait for it.
        prefix
            Of all keys; sessions that are to find each other have the same.
        timeout
            Seconds to wait for the host.

        Raises
        ------
        InvalidArgumentError
            The URL is none, or what is there is no store of this job.
        TimeoutError
            No process hosts it in time.
        UnavailableError
            It cannot be hosted there: the port is taken, or the address is of another machine.
        """
        self._store = _core._RendezvousStore(url, host, timeout)
        self._prefix = prefix

    def put(self, key: str, value: bytes) -> None:
        """Set a key.

        Parameters
        ----------
        key
            Its name.
        value
            At most 64 KiB.

        Raises
        ------
        InvalidArgumentError
            The value has more bytes, or prefix and key have more than 249.
        UnavailableError
            The store is not there.
        """
        self._store.set(self._entry(key), value)
        self._list(key)

    def get(self, key: str) -> bytes | None:
        """Return what a key has.

        Parameters
        ----------
        key
            Its name.

        Returns
        -------
        bytes | None
            None, at once: there is no such key.

        Raises
        ------
        UnavailableError
            The store is not there.
        """
        return self._store.look_up(self._entry(key))

    def keys(self) -> list[str]:
        """Return all keys below the prefix.

        Returns
        -------
        list[str]
            Sorted.

        Raises
        ------
        UnavailableError
            The store is not there.
        """
        count = self._store.add(self._prefix + "count", 0)
        named = [self._store.look_up(self._numbered(number)) for number in range(1, count + 1)]
        # One that is being put has a number, but no name yet; one that was deleted has no value.
        keys = [name.decode() for name in named if name is not None]
        return sorted(key for key in keys if self.get(key) is not None)

    def delete(self, key: str) -> None:
        """Take a key out; nothing where there is none.

        Parameters
        ----------
        key
            Its name.

        Raises
        ------
        UnavailableError
            The store is not there.
        """
        self._store.remove(self._entry(key))

    def _entry(self, key: str) -> str:
        return f"{self._prefix}key/{key}"

    def _numbered(self, number: int) -> str:
        return f"{self._prefix}number/{number}"

    def _list(self, key: str) -> None:
        """Give a key a number, once: the store has no list of its keys, but counts."""
        if self._store.add(f"{self._prefix}listed/{key}", 1) == 1:
            number = self._store.add(self._prefix + "count", 1)
            self._store.set(self._numbered(number), key.encode())

# SPDX-License-Identifier: Apache-2.0
"""The library's rendezvous store as a key-value store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl import _core
from pccl.p2p.one_process import of_one_process

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["RendezvousStore"]


@of_one_process
class RendezvousStore:
    """Keys in the store that PCCL's ranks use for rendezvous: a file, or a server in a process.

    It has no leases: keys outlive their process. A value has at most 64 KiB, enough for the entry
    of a session with some hundred memories. All methods are thread-safe.
    """

    def __init__(
        self,
        url: str,
        *,
        host: bool = False,
        prefix: str = "pccl/p2p/",
        timeout: float | timedelta = 10.0,
    ) -> None:
        """Create a store, or connect to it.

        Parameters
        ----------
        url
            ``"tcp://host:port"``, or ``"file:///path"`` of a file that all processes share.
        host
            True in exactly one process, which serves ``tcp://`` until it ends, or creates the file,
            which must not exist before. The other processes wait for it.
        prefix
            Prefix of all keys; sessions that find each other use the same prefix.
        timeout
            Maximum seconds to wait for the hosting process.

        Raises
        ------
        InvalidArgumentError
            The URL is invalid, or refers to something other than a store of this job.
        TimeoutError
            No process hosted the store in time.
        UnavailableError
            The store cannot be hosted there: the port is in use, or the address belongs to another
            machine.
        """
        self._store = _core._RendezvousStore(url, host, timeout)
        self._prefix = prefix

    def put(self, key: str, value: bytes) -> None:
        """Set a key.

        Parameters
        ----------
        key
            Name of the key.
        value
            Value of at most 64 KiB.

        Raises
        ------
        InvalidArgumentError
            The value is too long, or prefix and key together have more than 249 bytes.
        UnavailableError
            The store is not reachable.
        """
        self._store.set(self._entry(key), value)
        self._list(key)

    def get(self, key: str) -> bytes | None:
        """Return the value of a key.

        Parameters
        ----------
        key
            Name of the key.

        Returns
        -------
        bytes | None
            Value; None, without waiting, if the key does not exist.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """
        return self._store.look_up(self._entry(key))

    def keys(self) -> list[str]:
        """Return all keys below the prefix.

        Returns
        -------
        list[str]
            Sorted keys.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """
        count = self._store.add(self._prefix + "count", 0)
        named = [self._store.look_up(self._numbered(number)) for number in range(1, count + 1)]
        # A key that is being put has a number, but no name yet; a deleted key has no value.
        keys = [name.decode() for name in named if name is not None]
        return sorted(key for key in keys if self.get(key) is not None)

    def delete(self, key: str) -> None:
        """Delete a key; no effect if it does not exist.

        Parameters
        ----------
        key
            Name of the key.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """
        self._store.remove(self._entry(key))

    def _entry(self, key: str) -> str:
        return f"{self._prefix}key/{key}"

    def _numbered(self, number: int) -> str:
        return f"{self._prefix}number/{number}"

    def _list(self, key: str) -> None:
        """Assign a number to a key, once: the store cannot list its keys, but has counters."""
        if self._store.add(f"{self._prefix}listed/{key}", 1) == 1:
            number = self._store.add(self._prefix + "count", 1)
            self._store.set(self._numbered(number), key.encode())

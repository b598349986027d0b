# SPDX-License-Identifier: Apache-2.0
"""Directory of sessions and their memory, in any key-value store."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pccl import _core, errors
from pccl._internal.time_limits import limit_of
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.p2p.memory import RemoteMemory
from pccl.p2p.one_process import of_one_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from pccl.p2p.memory import Memory
    from pccl.p2p.session import Session

__all__ = ["Directory", "KeyStore", "TorchStore"]

_VERSION = 1
_MOST_ENTRY = 1 << 20  # bytes, for some thousand memories
_BETWEEN_LOOKS = 0.05  # seconds


class KeyStore(Protocol):
    """Key-value store for a directory.

    Use :class:`~pccl.p2p.EtcdStore`, :class:`TorchStore`, :class:`~pccl.p2p.RendezvousStore`, or
    your own class. A store with an atomic compare-and-delete may have ``delete_if(key, value)``, as
    :meth:`~pccl.p2p.EtcdStore.delete_if`; a directory uses it to withdraw its entry.
    """

    def put(self, key: str, value: bytes) -> None:
        """Set a key.

        Parameters
        ----------
        key
            Name of the key.
        value
            Any bytes.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """

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

    def keys(self) -> list[str]:
        """Return all keys.

        Returns
        -------
        list[str]
            Sorted names.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """

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


@contextlib.contextmanager
def _raised_as_unavailable() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise UnavailableError(f"the store of torch does not answer: {reason}") from error


@of_one_process
class TorchStore:
    """Keys in a store of ``torch.distributed``; without leases, they outlive their process."""

    def __init__(self, store: Any, *, prefix: str = "pccl/p2p/") -> None:
        """Use the keys of a store below a prefix.

        Parameters
        ----------
        store
            A ``TCPStore``, ``HashStore`` or ``FileStore``.
        prefix
            Prefix of all keys; sessions that find each other use the same prefix.
        """
        self._store = store
        self._prefix = prefix

    def put(self, key: str, value: bytes) -> None:
        """Set a key.

        Parameters
        ----------
        key
            Name of the key.
        value
            Any bytes.

        Raises
        ------
        UnavailableError
            The store is not reachable; torch's error is the ``__cause__``.
        """
        name = self._prefix + key
        with _raised_as_unavailable():
            self._store.set(name, value)
            # A TCPStore sends a value without waiting for an answer, even if its server has exited.
            self._store.check([name])

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
            The store is not reachable; torch's error is the ``__cause__``.
        """
        name = self._prefix + key
        with _raised_as_unavailable():
            return bytes(self._store.get(name)) if self._store.check([name]) else None

    def keys(self) -> list[str]:
        """Return all keys below the prefix.

        Returns
        -------
        list[str]
            Sorted names.

        Raises
        ------
        UnavailableError
            The store is not reachable; torch's error is the ``__cause__``.
        """
        with _raised_as_unavailable():
            names = [str(name) for name in self._store.list_keys()]
        return sorted(
            name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)
        )

    def delete(self, key: str) -> None:
        """Delete a key; no effect if it does not exist.

        Parameters
        ----------
        key
            Name of the key.

        Raises
        ------
        UnavailableError
            The store is not reachable; torch's error is the ``__cause__``.
        """
        with _raised_as_unavailable():
            self._store.delete_key(self._prefix + key)


@dataclass(frozen=True)
class _Entry:
    info: bytes
    memories: dict[str, bytes]

    def serialise(self) -> bytes:
        texts = {name: base64.b64encode(each).decode() for name, each in self.memories.items()}
        info = base64.b64encode(self.info).decode()
        return json.dumps({"version": _VERSION, "info": info, "memories": texts}).encode()

    @classmethod
    def parse(cls, peer: str, value: bytes) -> _Entry:
        if len(value) > _MOST_ENTRY:
            raise InvalidArgumentError(
                f'the entry of session "{peer}" has {len(value)} bytes, more than {_MOST_ENTRY}'
            )
        try:
            entry = json.loads(value)
            version = entry["version"]
            info = base64.b64decode(entry["info"], validate=True)
            memories = {
                str(name): base64.b64decode(each, validate=True)
                for name, each in entry["memories"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidArgumentError(
                f'the entry of session "{peer}" is none of a directory: {error!r}'
            ) from error
        if version != _VERSION:
            raise InvalidArgumentError(
                f'the entry of session "{peer}" has version {version!r}, this is {_VERSION}'
            )
        return cls(info, memories)


@of_one_process
class Directory:
    """Directory of sessions: the session's own entry in a key-value store, and those of peers.

    An entry contains the session's ``connection_info()``, which includes its secret: every reader
    of the store can access the registered memory.
    """

    def __init__(self, session: Session, store: KeyStore) -> None:
        """Use a store; nothing is published yet.

        Parameters
        ----------
        session
            Session whose entry this publishes, and into which it loads the connection info of
            peers.
        store
            Store of the entries.
        """
        self._session = session
        self._store = store
        self._published: bytes | None = None

    def publish(self, **memories: Memory) -> None:
        """Publish this session's entry, replacing its previous one.

        Parameters
        ----------
        memories
            Registered memory of this session, by the names for peers.

        Raises
        ------
        InvalidArgumentError
            The entry would take more than 1 MiB.
        UnavailableError
            The store is not reachable; or another incarnation of the session has replaced the
            entry, and its entry remains.
        """
        descriptors = {name: each.descriptor().serialize() for name, each in memories.items()}
        entry = _Entry(self._session.connection_info(), descriptors).serialise()
        if len(entry) > _MOST_ENTRY:
            raise InvalidArgumentError(
                f"{len(memories)} memories take {len(entry)} bytes, more than {_MOST_ENTRY}"
            )
        self._check_still_own()
        self._store.put(self._session.name, entry)
        self._published = entry

    def withdraw(self) -> None:
        """Delete this session's entry, unless another incarnation has replaced it.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """
        if self._published is not None:
            delete_if = getattr(self._store, "delete_if", self._delete_if)
            delete_if(self._session.name, self._published)
        self._published = None

    def names(self) -> list[str]:
        """Return the names of all sessions with an entry.

        Returns
        -------
        list[str]
            Sorted names.

        Raises
        ------
        UnavailableError
            The store is not reachable.
        """
        return self._store.keys()

    def find(self, peer: str, timeout: float | timedelta = 10.0) -> dict[str, RemoteMemory]:
        """Wait for a peer's entry, load its connection info, and return its memory by name.

        Call it again after :class:`~pccl.PeerLostError`, to find a restarted peer.

        Parameters
        ----------
        peer
            Name of the peer's session.
        timeout
            Maximum seconds to wait.

        Returns
        -------
        dict[str, RemoteMemory]
            Published memory of the peer, by name.

        Raises
        ------
        TimeoutError
            No entry of that name appeared in time.
        InvalidArgumentError
            The entry belongs to another session, is not an entry, or is damaged.
        UnavailableError
            The store is not reachable.
        """
        entry = _Entry.parse(peer, self._await(peer, timeout))
        name, read = _core._P2pSession.read_entry(entry.info, list(entry.memories.values()))
        if name != peer:
            raise InvalidArgumentError(f'the entry of session "{peer}" is of session "{name}"')
        self._session.load(entry.info)  # after all checks of the entry
        return dict(zip(entry.memories, map(RemoteMemory, read), strict=True))

    def _check_still_own(self) -> None:
        if self._published is None:
            return
        present = self._store.get(self._session.name)
        if present is not None and present != self._published:
            raise UnavailableError(
                f'another incarnation of session "{self._session.name}" has put its entry since '
                "this one did: it is the one that peers find"
            )

    def _delete_if(self, key: str, value: bytes) -> None:
        if self._store.get(key) == value:
            self._store.delete(key)

    def _await(self, peer: str, timeout: float | timedelta) -> bytes:
        limit = limit_of(timeout)
        until = time.monotonic() + limit
        while (value := self._store.get(peer)) is None:
            if time.monotonic() >= until:
                raise errors.TimeoutError(
                    f'session "{peer}" has no entry in the directory after {limit:g} s', peer=peer
                )
            time.sleep(_BETWEEN_LOOKS)
        return value

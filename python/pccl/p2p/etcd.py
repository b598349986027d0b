# SPDX-License-Identifier: Apache-2.0
"""Keys in etcd, over its v3 gateway (HTTP with JSON), which etcd 3.4 and later serve."""

from __future__ import annotations

import contextlib
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pccl._internal.arguments import require
from pccl._internal.time_limits import seconds_of
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.p2p import bounded_post, etcd_gateway
from pccl.p2p.etcd_gateway import IS_ABSENT, EtcdGateway, LeaseIsGoneError, has_value, held_by
from pccl.p2p.one_process import of_one_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType

__all__ = ["EtcdStore"]

_LONGEST_TIMEOUT = 2e6  # seconds; sockets support at most about 24 days
_RENEWALS = 3  # per lease duration


@dataclass
class _OwnKey:
    value: bytes
    is_put: bool = False  # with success
    is_missing: bool = False  # its lease has ended, or another value may have replaced it


@of_one_process
class EtcdStore:
    """Keys below a prefix; keys that this store puts last until the process ends.

    These keys belong to a lease, which a thread renews. If the process dies, or is disconnected for
    longer than ``lease`` seconds, etcd deletes them. If it reconnects later, the store puts them
    again, except keys that another store has put meanwhile. The first put of a key in a store takes
    the key over from the store that owned it, which then neither replaces nor deletes it. All
    methods are thread-safe.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        prefix: str = "pccl/p2p/",
        lease: float | timedelta = 10.0,
        timeout: float | timedelta = 5.0,
    ) -> None:
        """Set the parameters of the store; no request is sent yet.

        Parameters
        ----------
        endpoint
            URL of etcd, ``http://10.0.0.1:2379`` or ``https://``.
        prefix
            Prefix of all keys; sessions that find each other use the same prefix.
        lease
            Seconds for which keys outlive their process; finite, at least 1.
        timeout
            Maximum seconds of each request to etcd, from the connection to the last byte; above 0.

        Raises
        ------
        InvalidArgumentError
            The endpoint is not an HTTP URL, or a number is out of range.
        """
        require(endpoint, str, "endpoint", "a URL")
        if not bounded_post.is_url(endpoint):
            raise InvalidArgumentError(f"etcd is at http://host:port or https://, not {endpoint!r}")
        lease, timeout = seconds_of(lease, "lease"), seconds_of(timeout, "timeout")
        if not (1 <= lease < math.inf and timeout > 0):
            raise InvalidArgumentError(
                f"lease is {lease} and timeout {timeout}: a lease takes 1 s or longer, and an end, "
                "and an answer some time"
            )
        self._endpoint = endpoint.rstrip("/")
        self._timeout = min(timeout, _LONGEST_TIMEOUT)
        self._gateway = EtcdGateway(
            self._endpoint, prefix, lambda *requested: self._ask(*requested)
        )
        self._lease = lease
        self._lock = threading.Lock()  # guards the members below; no request is made under it
        self._lease_id: str | None = None
        self._own: dict[str, _OwnKey] = {}
        self._taken_over: set[str] = set()  # by other stores
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="pccl-etcd", daemon=True)

    def put(self, key: str, value: bytes) -> None:
        """Set a key, which lasts until this store closes or its process ends.

        The first put of a key in this store takes the key over from another store.

        Parameters
        ----------
        key
            Name of the key, without the prefix.
        value
            Any bytes; etcd accepts at most 1.5 MiB.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses the request; another store has taken the key over since
            this store put it; or this store is closed.
        """
        own = _OwnKey(value)
        with self._lock:
            self._check_usable(key)
            before = self._own.get(key)
            self._own[key] = own
            if not self._keeper.is_alive():
                self._keeper.start()
        put = self._gateway.put if before is None else self._put_if_own
        try:
            self._with_lease(lambda lease: put(key, value, lease))
        except BaseException:
            self._restore(key, own, before)
            raise
        self._note_put(key, own)

    def get(self, key: str) -> bytes | None:
        """Return the value of a key.

        Parameters
        ----------
        key
            Name of the key, without the prefix.

        Returns
        -------
        bytes | None
            Value; None if the key does not exist.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses the request.
        """
        return self._gateway.get(key)

    def keys(self) -> list[str]:
        """Return all keys below the prefix.

        Returns
        -------
        list[str]
            Sorted keys, without the prefix.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses the request.
        """
        return self._gateway.keys()

    def delete(self, key: str) -> None:
        """Delete a key; no effect if it does not exist.

        A key that this store has put is deleted only if no other store has taken it over. Any other
        key is deleted regardless of its owner.

        Parameters
        ----------
        key
            Name of the key, without the prefix.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses the request.
        """
        with self._lock:
            is_own = self._own.pop(key, None) is not None or key in self._taken_over
            self._taken_over.discard(key)
            lease = self._lease_id
        if not is_own:
            self._gateway.delete(key)
        elif lease is not None:
            self._gateway.delete_if(held_by(lease), key)

    def delete_if(self, key: str, value: bytes) -> bool:
        """Delete a key if it has a given value, atomically, and do not put that value again.

        Parameters
        ----------
        key
            Name of the key, without the prefix.
        value
            Value that the key must have.

        Returns
        -------
        bool
            Whether the key had the value.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses the request.
        """
        with self._lock:
            own = self._own.get(key)
            if own is not None and own.value == value:
                del self._own[key]
        return self._gateway.delete_if(has_value(value), key)

    def close(self) -> None:
        """Delete all keys that this store has put.

        Raises
        ------
        UnavailableError
            etcd does not answer; it deletes the keys when their lease ends.
        """
        self._closed.set()
        if self._keeper.is_alive():
            self._keeper.join()
        with self._lock:
            lease, self._lease_id = self._lease_id, None
            self._own.clear()
        if lease is not None:
            self._gateway.revoke(lease)

    def __enter__(self) -> EtcdStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_usable(self, key: str) -> None:
        if self._closed.is_set():
            raise UnavailableError("this store of etcd is closed")
        if key in self._taken_over:
            raise self._lost(key)

    def _restore(self, key: str, own: _OwnKey, before: _OwnKey | None) -> None:
        """Restore a key's state after a failed put, unless another call has put it since."""
        with self._lock:
            if self._own.get(key) is not own:
                return
            if before is None:
                del self._own[key]
            else:
                self._own[key] = before

    def _note_put(self, key: str, own: _OwnKey) -> None:
        """Record a successful put; repair the key if another call has changed it meanwhile."""
        with self._lock:
            own.is_put = True
            present = self._own.get(key)
            lease = self._lease_id
            if present is not None and present is not own:
                present.is_missing = True
        if present is None and lease is not None:
            self._gateway.delete_if(held_by(lease), key)

    def _keep(self) -> None:
        while not self._closed.wait(self._lease / _RENEWALS):
            # Retry until etcd answers correctly again; the lease may have ended by then.
            with contextlib.suppress(UnavailableError):
                self._renew()

    def _renew(self) -> None:
        with self._lock:
            lease = self._lease_id
        if lease is not None and not self._gateway.renew(lease):
            self._forget(lease)
        with self._lock:
            missing = [key for key, own in self._own.items() if own.is_put and own.is_missing]
        for key in missing:
            if self._closed.is_set():
                return
            self._put_again(key)

    def _forget(self, lease: str) -> None:
        """Forget an ended lease and its keys, so that the next request grants a new lease."""
        with self._lock:
            if self._lease_id == lease:
                self._lease_id = None
                for own in self._own.values():
                    own.is_missing = own.is_put

    def _with_lease(self, work: Callable[[str], None]) -> None:
        """Execute work with a lease; repeat it with a new lease if the lease has just ended."""
        lease = self._present_lease()
        try:
            work(lease)
        except LeaseIsGoneError:
            self._forget(lease)
            work(self._present_lease())

    def _present_lease(self) -> str:
        with self._lock:
            if self._closed.is_set():
                raise UnavailableError("this store of etcd is closed")
            if self._lease_id is not None:
                return self._lease_id
        granted = self._gateway.grant(self._lease)
        with self._lock:
            self._lease_id = self._lease_id or granted
            return self._lease_id

    def _put_again(self, key: str) -> None:
        """Put a key again whose lease has ended, unless another store has put it meanwhile."""
        with self._lock:
            own = self._own.get(key)
            if own is None:
                return
            own.is_missing = False
        try:
            self._with_lease(lambda lease: self._put_if_own(key, own.value, lease))
        except _TakenOverError:
            return
        except UnavailableError:
            own.is_missing = True  # the next round tries again
            raise
        self._note_put(key, own)

    def _put_if_own(self, key: str, value: bytes, lease: str) -> None:
        """Put a key if this store's lease owns it, or if it does not exist."""
        for condition in (held_by(lease), IS_ABSENT):
            if self._gateway.put_if(condition, key, value, lease):
                return
        with self._lock:
            self._own.pop(key, None)
            self._taken_over.add(key)
        raise self._lost(key)

    def _ask(self, method: str, question: dict[str, Any]) -> dict[str, Any]:
        return etcd_gateway.ask(self._endpoint, method, question, self._timeout)

    def _lost(self, key: str) -> UnavailableError:
        return _TakenOverError(
            f'another store of etcd at {self._endpoint} has put "{key}" since this one '
            "did, and has it now: delete it here before you put it again"
        )


class _TakenOverError(UnavailableError):
    """Error of a key that another store has taken over."""

# SPDX-License-Identifier: Apache-2.0
"""Keys in etcd, over its v3 gateway: HTTP with JSON, which etcd 3.4 and later serve."""

from __future__ import annotations

import contextlib
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pccl.arguments import require
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.p2p import bounded_post, etcd_gateway
from pccl.p2p.etcd_gateway import IS_ABSENT, EtcdGateway, LeaseIsGoneError, has_value, held_by
from pccl.p2p.one_process import of_one_process
from pccl.time_limits import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType

__all__ = ["EtcdStore"]

_LONGEST_TIMEOUT = 2e6  # seconds: sockets take some 24 days at most
_RENEWALS = 3  # in the time of a lease


@dataclass
class _OwnKey:
    value: bytes
    is_put: bool = False  # with success
    is_missing: bool = False  # its lease has ended, or another value may have come after it


@of_one_process
class EtcdStore:
    """Keys below a prefix, those that are put here for as long as this process lives.

    They belong to a lease, which a thread renews: when the process dies, or is cut off for longer
    than ``lease`` seconds, they go; if it comes back later, they do, but for those that another
    store has put meanwhile. Whoever puts a key first in a store takes it over from the store that
    had it: that one neither replaces nor deletes it any more. Safe from every thread.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        prefix: str = "pccl/p2p/",
        lease: float | timedelta = 10.0,
        timeout: float | timedelta = 5.0,
    ) -> None:
        """Find etcd; nothing is put yet.

        Parameters
        ----------
        endpoint
            As ``http://10.0.0.1:2379``, or ``https://``.
        prefix
            Of all keys; sessions that are to find each other have the same.
        lease
            Seconds for which keys outlive their process; at least 1.
        timeout
            Seconds that each request to etcd may take, from the connection to the last byte.

        Raises
        ------
        InvalidArgumentError
            The endpoint is no address of HTTP, or a number is out of its range.
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
        self._gateway = EtcdGateway(self._endpoint, prefix, lambda *asked: self._ask(*asked))
        self._lease = lease
        self._lock = threading.Lock()  # guards what follows; no request is made under it
        self._lease_id: str | None = None
        self._own: dict[str, _OwnKey] = {}
        self._taken_over: set[str] = set()  # by other stores
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="pccl-etcd", daemon=True)

    def put(self, key: str, value: bytes) -> None:
        """Set a key, for as long as this store and its process live.

        The first put of a store takes the key over from whoever had it.

        Parameters
        ----------
        key
            Its name, behind the prefix.
        value
            Any bytes, of which etcd takes 1.5 MiB.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses; another store has taken the key over since this one
            put it; or this store is closed.
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
        """Return what a key has.

        Parameters
        ----------
        key
            Its name, behind the prefix.

        Returns
        -------
        bytes | None
            None: there is no such key.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses.
        """
        return self._gateway.get(key)

    def keys(self) -> list[str]:
        """Return all keys below the prefix.

        Returns
        -------
        list[str]
            Sorted, without the prefix.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses.
        """
        return self._gateway.keys()

    def delete(self, key: str) -> None:
        """Take a key out; nothing where there is none.

        What this store has put goes only while no other store has taken it over; else whoever put
        it.

        Parameters
        ----------
        key
            Its name, behind the prefix.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses.
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
        """Take a key out if it has a value, and do not put that again; all in one step.

        Parameters
        ----------
        key
            Its name, behind the prefix.
        value
            What it must have.

        Returns
        -------
        bool
            Whether it had.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses.
        """
        with self._lock:
            own = self._own.get(key)
            if own is not None and own.value == value:
                del self._own[key]
        return self._gateway.delete_if(has_value(value), key)

    def close(self) -> None:
        """Take out all keys that were put here.

        Raises
        ------
        UnavailableError
            etcd does not answer: they go when their lease ends.
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
        """Have a key as it was before a put that failed, unless another call has put it since."""
        with self._lock:
            if self._own.get(key) is not own:
                return
            if before is None:
                del self._own[key]
            else:
                self._own[key] = before

    def _note_put(self, key: str, own: _OwnKey) -> None:
        """Note what etcd has; where another call has put or deleted it meanwhile, mend that."""
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
            # Until etcd is back, or answers as it should; the lease may have ended by then.
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
        """Have the next request ask for another lease: this one has ended, with all its keys."""
        with self._lock:
            if self._lease_id == lease:
                self._lease_id = None
                for own in self._own.values():
                    own.is_missing = own.is_put

    def _with_lease(self, work: Callable[[str], None]) -> None:
        """Do what needs a lease, with another one where the present one has just ended."""
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
        """Put a key whose lease has ended, unless another store has put it meanwhile."""
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
            own.is_missing = True  # as before: the next round tries again
            raise
        self._note_put(key, own)

    def _put_if_own(self, key: str, value: bytes, lease: str) -> None:
        """Put a key that the lease of this store holds, or that is not there."""
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
    """Another store has a key."""

"""Keys in etcd, over its v3 gateway: HTTP with JSON, which etcd 3.4 and later serve."""

from __future__ import annotations

import base64
import http.client
import json
import math
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from pccl.errors import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EtcdStore"]

_MOST_ANSWER = 64 << 20  # bytes
_LONGEST_TIMEOUT = 2e6  # seconds
_RENEWALS = 3  # in the time of a lease


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class EtcdStore:
    """Keys below a prefix, those that are put here for as long as this process lives.

    They belong to a lease, which a thread renews: when the process dies, or is cut off for longer
    than ``lease`` seconds, they go; if it comes back later, they do. Safe from every thread.
    """

    def __init__(
        self, endpoint: str, *, prefix: str = "pccl/p2p/", lease: float = 10.0, timeout: float = 5.0
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
            Seconds to wait for each of etcd's answers.

        Raises
        ------
        InvalidArgumentError
            The endpoint is no address of HTTP, or a number is out of its range.
        """
        if not endpoint.startswith(("http://", "https://")):
            raise InvalidArgumentError(f"etcd is at http://host:port or https://, not {endpoint!r}")
        if not (1 <= lease < math.inf and timeout > 0):
            raise InvalidArgumentError(
                f"lease is {lease} and timeout {timeout}: a lease takes 1 s or longer, and an end, "
                "and an answer some time"
            )
        self._endpoint = endpoint.rstrip("/")
        self._prefix = prefix
        self._lease = lease
        # Sockets take some 24 days at most.
        self._timeout = timeout if timeout < _LONGEST_TIMEOUT else None
        self._lock = threading.Lock()  # guards what follows
        self._lease_id: str | None = None
        self._own: dict[str, bytes] = {}
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="pccl-etcd", daemon=True)

    def put(self, key: str, value: bytes) -> None:
        """Set a key, for as long as this store and its process live.

        Parameters
        ----------
        key
            Its name, behind the prefix.
        value
            Any bytes, of which etcd takes 1.5 MiB.

        Raises
        ------
        UnavailableError
            etcd does not answer, or refuses; or this store is closed.
        """
        with self._lock:
            if self._closed.is_set():
                raise UnavailableError("this store of etcd is closed")
            self._own[key] = value
            if self._lease_id is None:
                self._put_all()
            else:
                self._put(key, value)
            if not self._keeper.is_alive():
                self._keeper.start()

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
        pairs = self._range({"key": _text((self._prefix + key).encode())})
        return self._decoded(pairs[0].get("value", "")) if pairs else None

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
        first = self._prefix.encode()
        behind = first[:-1] + bytes([first[-1] + 1]) if first else b"\0"
        wanted = {"key": _text(first or b"\0"), "range_end": _text(behind), "keys_only": True}
        names = [self._decoded(pair["key"])[len(first) :] for pair in self._range(wanted)]
        return sorted(name.decode(errors="replace") for name in names)

    def delete(self, key: str) -> None:
        """Take a key out, whoever put it; nothing where there is none.

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
            self._own.pop(key, None)
        self._ask("kv/deleterange", {"key": _text((self._prefix + key).encode())})

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
            self._ask("lease/revoke", {"ID": lease})

    def __enter__(self) -> EtcdStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _keep(self) -> None:
        while not self._closed.wait(self._lease / _RENEWALS):
            try:
                with self._lock:
                    self._renew()
            except UnavailableError:
                continue  # until etcd is back; the lease may have ended by then

    def _renew(self) -> None:
        answer = self._ask("lease/keepalive", {"ID": self._lease_id}).get("result", {})
        if int(answer.get("TTL", 0)) <= 0:
            self._put_all()

    def _put_all(self) -> None:
        granted = self._ask("lease/grant", {"TTL": math.ceil(self._lease)})
        self._lease_id = str(granted["ID"])
        for key, value in self._own.items():
            self._put(key, value)

    def _put(self, key: str, value: bytes) -> None:
        put = {"key": _text((self._prefix + key).encode()), "value": _text(value)}
        self._ask("kv/put", put | {"lease": self._lease_id})

    def _range(self, wanted: dict[str, Any]) -> list[dict[str, str]]:
        return list(self._ask("kv/range", wanted).get("kvs", []))

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError as error:
            raise self._unavailable("answers what is not base64") from error

    def _ask(self, method: str, question: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self._endpoint}/v3/{method}", json.dumps(question).encode(), method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                answer = json.loads(response.read(_MOST_ANSWER))
        except urllib.error.HTTPError as error:
            reason = error.read(200).decode(errors="replace").strip()
            raise self._unavailable(f"refuses {method}: {reason}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unavailable(f"does not answer {method}: {error}") from error
        if not isinstance(answer, dict):
            raise self._unavailable(f"answers {method} with what is no object")
        return answer

    def _unavailable(self, what: str) -> UnavailableError:
        return UnavailableError(f"etcd at {self._endpoint} {what}")

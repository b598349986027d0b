# SPDX-License-Identifier: Apache-2.0
"""Calls of etcd's v3 gateway (HTTP with JSON) for a key-value store."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from pccl.errors import UnavailableError
from pccl.p2p import bounded_post

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "IS_ABSENT",
    "Condition",
    "EtcdGateway",
    "LeaseIsGoneError",
    "ask",
    "has_value",
    "held_by",
]

_MOST_ANSWER = 64 << 20  # bytes
_LEASE_IS_GONE = "requested lease not found"

# Condition on a key for an atomic operation.
Condition: TypeAlias = "dict[str, str]"
Asking: TypeAlias = "Callable[[str, dict[str, Any]], dict[str, Any]]"
IS_ABSENT: Condition = {"target": "CREATE", "result": "EQUAL", "create_revision": "0"}


def held_by(lease: str) -> Condition:
    """Return the condition that a key belongs to a lease."""
    return {"target": "LEASE", "result": "EQUAL", "lease": lease}


def has_value(value: bytes) -> Condition:
    """Return the condition that a key has a given value."""
    return {"target": "VALUE", "result": "EQUAL", "value": _text(value)}


class LeaseIsGoneError(UnavailableError):
    """Error of a request with a lease that has ended."""


class EtcdGateway:
    """Client for keys below a prefix, and leases. A failed request raises UnavailableError."""

    def __init__(self, endpoint: str, prefix: str, ask: Asking) -> None:
        self._endpoint = endpoint
        self._prefix = prefix.encode()
        self._ask = ask

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it does not exist."""
        pairs = self._range({"key": self._name(key)})
        return self._decoded(pairs[0].get("value", "")) if pairs else None

    def keys(self) -> list[str]:
        """Return all keys below the prefix, sorted, without the prefix."""
        first = self._prefix
        behind = first[:-1] + bytes([first[-1] + 1]) if first else b"\0"
        wanted = {"key": _text(first or b"\0"), "range_end": _text(behind), "keys_only": True}
        names = [self._decoded(pair.get("key"))[len(first) :] for pair in self._range(wanted)]
        return sorted(name.decode(errors="replace") for name in names)

    def put(self, key: str, value: bytes, lease: str) -> None:
        """Set a key for the duration of a lease."""
        self._ask("kv/put", self._entry(key, value, lease))

    def put_if(self, condition: Condition, key: str, value: bytes, lease: str) -> bool:
        """Set a key if it meets a condition, and return whether it did."""
        return self._swap(key, condition, {"request_put": self._entry(key, value, lease)})

    def delete(self, key: str) -> None:
        """Delete a key."""
        self._ask("kv/deleterange", {"key": self._name(key)})

    def delete_if(self, condition: Condition, key: str) -> bool:
        """Delete a key if it meets a condition, and return whether it did."""
        return self._swap(key, condition, {"request_delete_range": {"key": self._name(key)}})

    def grant(self, seconds: float) -> str:
        """Create a lease of some seconds, and return its id."""
        granted = self._ask("lease/grant", {"TTL": math.ceil(seconds)}).get("ID")
        if not isinstance(granted, str | int):
            raise self._unavailable("answers lease/grant without a lease")
        return str(granted)

    def renew(self, lease: str) -> bool:
        """Renew a lease; return False if it has ended."""
        answer = self._ask("lease/keepalive", {"ID": lease}).get("result", {})
        try:
            return int(answer.get("TTL", 0)) > 0
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unavailable("answers lease/keepalive without a lease") from error

    def revoke(self, lease: str) -> None:
        """End a lease and delete its keys."""
        with contextlib.suppress(LeaseIsGoneError):
            self._ask("lease/revoke", {"ID": lease})

    def _name(self, key: str) -> str:
        return _text(self._prefix + key.encode())

    def _entry(self, key: str, value: bytes, lease: str) -> dict[str, str]:
        return {"key": self._name(key), "value": _text(value), "lease": lease}

    def _swap(self, key: str, condition: Condition, then: dict[str, Any]) -> bool:
        compare = [{"key": self._name(key), **condition}]
        answer = self._ask("kv/txn", {"compare": compare, "success": [then]})
        succeeded = answer.get("succeeded", False)
        if "header" not in answer or not isinstance(succeeded, bool):
            raise self._unavailable("answers kv/txn without an outcome")
        return succeeded

    def _range(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        pairs = self._ask("kv/range", wanted).get("kvs", [])
        if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
            raise self._unavailable("answers kv/range without a list of pairs")
        return pairs

    def _decoded(self, text: object) -> bytes:
        if isinstance(text, str):
            with contextlib.suppress(ValueError):
                return base64.b64decode(text, validate=True)
        raise self._unavailable("answers with text that is not base64")

    def _unavailable(self, what: str) -> UnavailableError:
        return UnavailableError(f"etcd at {self._endpoint} {what}")


def ask(endpoint: str, method: str, question: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Return the answer to one request; ``timeout`` limits the whole request, in seconds."""
    where = f"etcd at {endpoint}"
    try:
        text = bounded_post.post(
            f"{endpoint}/v3/{method}",
            json.dumps(question).encode(),
            seconds=timeout,
            most_bytes=_MOST_ANSWER,
        )
        answer = json.loads(text)
    except bounded_post.RefusedError as error:
        kind = LeaseIsGoneError if _LEASE_IS_GONE in str(error) else UnavailableError
        raise kind(f"{where} refuses {method}: {error}") from error
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise UnavailableError(f"{where} does not answer {method}: {error}") from error
    if not isinstance(answer, dict):
        raise UnavailableError(f"{where} answers {method} with JSON that is no object")
    return answer


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()

# SPDX-License-Identifier: Apache-2.0
"""Names of hosts, looked up with a deadline."""

from __future__ import annotations

import dataclasses
import queue
import socket
import threading

__all__ = ["Lookup", "addresses_of"]

LIMIT_S = 3.0


@dataclasses.dataclass(frozen=True)
class Lookup:
    """The addresses of a name, or the reason why it has none."""

    addresses: tuple[str, ...] = ()
    failure: str = ""


def addresses_of(name: str, limit_s: float = LIMIT_S) -> Lookup:
    """Look up a name; a resolver that does not answer is a failure."""
    found: queue.SimpleQueue[Lookup] = queue.SimpleQueue()
    threading.Thread(
        target=lambda: found.put(_look_up(name)), name="pccl-doctor-lookup", daemon=True
    ).start()
    try:
        return found.get(timeout=limit_s)
    except queue.Empty:
        return Lookup(failure=f"the resolver did not answer within {limit_s:g} s")


def _look_up(name: str) -> Lookup:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as refusal:
        return Lookup(failure=getattr(refusal, "strerror", None) or str(refusal))
    return Lookup(tuple(dict.fromkeys(str(each[4][0]) for each in found)))

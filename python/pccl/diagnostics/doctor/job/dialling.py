# SPDX-License-Identifier: Apache-2.0
"""TCP connections to several addresses and ports at once, with a deadline."""

from __future__ import annotations

import dataclasses
import errno
import os
import selectors
import socket
import time
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Dialled", "dial", "family_of", "reached"]

NO_ANSWER = "no answer"


@dataclasses.dataclass(frozen=True)
class Dialled:
    """Outcome of one connection; ``failure`` is empty if it was made."""

    address: str
    port: int
    failure: str = NO_ANSWER
    local: str = ""


def family_of(address: str) -> socket.AddressFamily:
    """Return the family of an address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def dial(
    ends: Iterable[tuple[str, int]], limit_s: float, grace_s: float | None = None
) -> list[Dialled]:
    """Connect to all ends at once, and close the connections.

    Parameters
    ----------
    ends
        Addresses and ports.
    limit_s
        Seconds for all of them.
    grace_s
        Seconds that the others have after the first one succeeded; None: the whole limit.
    """
    found: dict[tuple[str, int], Dialled] = {}
    deadline = time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for end in ends:
            _begin(selector, end, found)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                outcome = _outcome(typing.cast("socket.socket", key.fileobj), key.data)
                found[key.data] = outcome
                selector.unregister(key.fileobj)
                typing.cast("socket.socket", key.fileobj).close()
                if grace_s is not None and not outcome.failure:
                    deadline = min(deadline, time.monotonic() + grace_s)
        for key in list(selector.get_map().values()):
            typing.cast("socket.socket", key.fileobj).close()
    return list(found.values())


def _begin(
    selector: selectors.BaseSelector, end: tuple[str, int], found: dict[tuple[str, int], Dialled]
) -> None:
    channel = socket.socket(family_of(end[0]), socket.SOCK_STREAM)
    channel.setblocking(False)
    found[end] = Dialled(*end)
    status = channel.connect_ex(end)
    if status not in (0, errno.EINPROGRESS):
        found[end] = Dialled(*end, failure=os.strerror(status))
        channel.close()
    else:
        selector.register(channel, selectors.EVENT_WRITE, end)


def _outcome(channel: socket.socket, end: tuple[str, int]) -> Dialled:
    status = channel.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if status:
        return Dialled(*end, failure=os.strerror(status))
    return Dialled(*end, failure="", local=str(channel.getsockname()[0]))


def reached(outcomes: Sequence[Dialled]) -> list[Dialled]:
    """Return the connections that were made."""
    return [each for each in outcomes if not each.failure]

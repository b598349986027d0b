# SPDX-License-Identifier: Apache-2.0
"""Deadlines for calls of other libraries, which may block without end."""

from __future__ import annotations

import queue
import threading
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GRACE_S", "call_within"]

GRACE_S = 1.0  # for the error that the callee raises at its own deadline

_Value = typing.TypeVar("_Value")


def call_within(
    timeout: float, call: Callable[[], _Value], late: Callable[[], Exception]
) -> _Value:
    """Return the result of a call on a thread of its own, which is abandoned at the deadline.

    Parameters
    ----------
    timeout
        Seconds; the call gets ``GRACE_S`` more, for its own error.
    call
        Function without arguments; the caller's thread raises its exceptions.
    late
        Function that makes the error of a call that has not returned in time.
    """
    done: queue.SimpleQueue[tuple[_Value] | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(),))
        except BaseException as error:  # the caller's thread raises it
            done.put(error)

    threading.Thread(target=work, name="pccl-call", daemon=True).start()
    try:
        found = done.get(timeout=min(timeout + GRACE_S, threading.TIMEOUT_MAX))
    except queue.Empty:
        raise late() from None
    if isinstance(found, BaseException):
        raise found
    return found[0]

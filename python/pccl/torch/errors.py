# SPDX-License-Identifier: Apache-2.0
"""Errors of ``torch.distributed`` on PCCL, which are errors of PCCL and of torch at the same time.

``except pccl.PeerLostError`` and ``except torch.distributed.DistBackendError`` both catch a lost
peer. Errors of arguments are errors of `pccl.errors` only, because torch has no class for them.
"""

from __future__ import annotations

import functools

from torch.distributed import DistBackendError, DistNetworkError

from pccl import errors

__all__ = [
    "AbortedError",
    "InternalError",
    "MismatchError",
    "PeerLostError",
    "ResourceExhaustedError",
    "TimeoutError",
    "UnavailableError",
    "class_of",
]


class UnavailableError(errors.UnavailableError, DistBackendError, DistNetworkError):
    """Error of an operation that is not possible now, for example without the rendezvous store."""


class PeerLostError(errors.PeerLostError, DistBackendError, DistNetworkError):
    """Error of a rank that died, left or broke the protocol: see ``rank``, ``host`` and ``pid``."""


class TimeoutError(errors.TimeoutError, DistBackendError):
    """Error of an operation that exceeded its timeout; ``rank`` is the missing rank."""


class MismatchError(errors.MismatchError, DistBackendError):
    """Error of ranks that called different operations; the message contains both."""


class AbortedError(errors.AbortedError, DistBackendError):
    """Error of an operation whose group was aborted."""


class ResourceExhaustedError(errors.ResourceExhaustedError, DistBackendError):
    """Error of exhausted memory, descriptors or slots."""


class InternalError(errors.InternalError, DistBackendError):
    """Error of an internal fault of PCCL."""


_CLASSES: dict[str, type[errors.Error]] = {
    cls.code: cls
    for cls in (
        UnavailableError,
        PeerLostError,
        TimeoutError,
        MismatchError,
        AbortedError,
        ResourceExhaustedError,
        InternalError,
    )
}


@functools.lru_cache(maxsize=4096)
def class_of(code: str, rank: int, host: str, pid: int) -> type[errors.Error]:
    """Return an exception class for a C++ status, with a constructor that takes only a message.

    torch creates exceptions from a class and a text, so the class must contain rank, host and pid.
    A negative rank and process 0 mean that the value is unknown.
    """
    kind = _CLASSES.get(code) or errors.class_of(code)
    blamed = (None if rank < 0 else rank, host, pid or None)

    def init(self: errors.Error, message: str) -> None:
        kind.__init__(self, message, *blamed)

    def reduce(self: errors.Error) -> tuple[type[errors.Error], tuple[object, ...]]:
        return kind, (str(self), *blamed)

    names = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    return type(kind.__name__, (kind,), {**names, "__init__": init, "__reduce__": reduce})

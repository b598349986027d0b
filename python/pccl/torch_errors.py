# SPDX-License-Identifier: Apache-2.0
"""What operations of ``torch.distributed`` raise on PCCL: its own errors, and torch's, in one.

``except pccl.PeerLostError`` and ``except torch.distributed.DistBackendError`` both catch a lost
peer. Errors of arguments are those of `pccl.errors` alone, for torch has no class for them.
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
    """Not here or not now, for example because the store of the rendezvous is gone."""


class PeerLostError(errors.PeerLostError, DistBackendError, DistNetworkError):
    """A rank died, left or broke the protocol; ``rank``, ``host`` and ``pid`` say which."""


class TimeoutError(errors.TimeoutError, DistBackendError):
    """An operation took longer than its timeout; ``rank`` is what it waited for."""


class MismatchError(errors.MismatchError, DistBackendError):
    """Two ranks called different operations; the message has both."""


class AbortedError(errors.AbortedError, DistBackendError):
    """Somebody called abort on this group."""


class ResourceExhaustedError(errors.ResourceExhaustedError, DistBackendError):
    """Memory, descriptors or slots ran out."""


class InternalError(errors.InternalError, DistBackendError):
    """A fault of PCCL."""


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
    """Return a class for a status of the C++ library whose instances are made of a message alone.

    torch makes exceptions from a class and a text: what they know besides must be in the class. A
    negative rank blames nobody, and a process 0 is not known.
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

"""What operations of ``torch.distributed`` raise on PCCL: its own errors, and torch's, in one.

``except pccl.PeerLostError`` and ``except torch.distributed.DistBackendError`` both catch a lost
peer. Errors of arguments are those of `pccl.errors` alone, for torch has no class for them.
"""

from __future__ import annotations

from torch.distributed import DistBackendError, DistNetworkError

from pccl import errors

__all__ = [
    "AbortedError",
    "CollectiveTimeoutError",
    "InternalError",
    "MismatchError",
    "PeerLostError",
    "ResourceExhaustedError",
    "UnavailableError",
    "error_of",
]


class UnavailableError(errors.UnavailableError, DistBackendError, DistNetworkError):
    """Not here or not now, for example because the store of the rendezvous is gone."""


class PeerLostError(errors.PeerLostError, DistBackendError, DistNetworkError):
    """A rank died, left or spoke nonsense; ``rank``, ``host`` and ``pid`` say which."""


class CollectiveTimeoutError(errors.CollectiveTimeoutError, DistBackendError):
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
        CollectiveTimeoutError,
        MismatchError,
        AbortedError,
        ResourceExhaustedError,
        InternalError,
    )
}


def error_of(code: str, message: str, rank: int, host: str, pid: int) -> errors.Error:
    """Return the exception for a status of the C++ library, as `pccl.errors.error_of` does."""
    return errors.error_of(code, message, rank, host, pid, classes=_CLASSES)

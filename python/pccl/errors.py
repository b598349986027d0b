# SPDX-License-Identifier: Apache-2.0
"""Exceptions of PCCL. Where a built-in exception corresponds, the class derives from it."""

from __future__ import annotations

import builtins

from pccl.former_names import value_under_former_name

__all__ = [
    "AbortedError",
    "Error",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "PeerLostError",
    "ResourceExhaustedError",
    "TimeoutError",
    "UnavailableError",
    "UnsupportedError",
    "class_of",
    "error_of",
]


class Error(RuntimeError):
    """Base class of all errors of PCCL but ``pccl.launch.RankError``.

    Attributes
    ----------
    code
        The kind of error, for example ``"peer_lost"``.
    rank
        The rank that caused the error, as numbered in the group, or None.
    host
        The host of this rank; empty if unknown.
    pid
        The process id of this rank on its host, or None.
    peer
        The name of the peer's session (:mod:`pccl.p2p`), or None. Sessions have no ranks.
    """

    code: str = "internal"
    rank: int | None
    host: str
    pid: int | None
    peer: str | None

    def __init__(
        self,
        message: str,
        rank: int | None = None,
        host: str = "",
        pid: int | None = None,
        peer: str | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.pid = pid
        self.peer = peer

    def __repr__(self) -> str:
        """Return the message, and the known rank, host, process and peer."""
        blamed = {"rank": self.rank, "host": self.host, "pid": self.pid, "peer": self.peer}
        known = [f", {name}={value!r}" for name, value in blamed.items() if value not in (None, "")]
        return f"{type(self).__name__}({str(self)!r}{''.join(known)})"


class InvalidArgumentError(Error, ValueError):
    """Error of an invalid argument: correct the call."""

    code = "invalid_argument"


class UnsupportedError(Error, NotImplementedError):
    """Error of an operation that the build or the combination of arguments does not support."""

    code = "unsupported"


class UnavailableError(Error):
    """Error of an operation that is not possible here or now: try elsewhere or later."""

    code = "unavailable"


class PeerLostError(Error, ConnectionError):
    """Error of a peer that died, disconnected or broke the protocol: see ``rank`` or ``peer``."""

    code = "peer_lost"


class TimeoutError(Error, builtins.TimeoutError):
    """Error of an expired timeout; the message names the missing ranks or peers."""

    code = "timeout"


class MismatchError(Error):
    """Error of two sides that disagree: correct the program or the setting."""

    code = "mismatch"


class AbortedError(Error):
    """Error of an operation that was aborted or cancelled, or whose group or session closed."""

    code = "aborted"


class ResourceExhaustedError(Error):
    """Error of exhausted memory, descriptors or slots: free some, or raise the limit."""

    code = "resource_exhausted"


class InternalError(Error):
    """Error of an internal fault of PCCL."""

    code = "internal"


_CLASSES: dict[str, type[Error]] = {
    cls.code: cls
    for cls in (
        InvalidArgumentError,
        UnsupportedError,
        UnavailableError,
        PeerLostError,
        TimeoutError,
        MismatchError,
        AbortedError,
        ResourceExhaustedError,
        InternalError,
    )
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    return value_under_former_name(__name__, name)


def class_of(code: str) -> type[Error]:
    """Return the exception class for an error code of the C++ library."""
    return _CLASSES.get(code, InternalError)


def error_of(
    code: str, message: str, rank: int, host: str = "", pid: int = 0, peer: str = ""
) -> Error:
    """Return the exception for a status of the C++ library.

    A negative rank, process 0, and an empty peer mean that the value is unknown.
    """
    return class_of(code)(message, None if rank < 0 else rank, host, pid or None, peer or None)

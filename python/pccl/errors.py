# SPDX-License-Identifier: Apache-2.0
"""What PCCL raises. Every class is also the built-in one that a caller may expect."""

from __future__ import annotations

import builtins

from pccl.former_names import warn_of_former_name

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
    """Base of all errors of PCCL.

    Attributes
    ----------
    code
        The kind of error, for example ``"peer_lost"``.
    rank
        The rank to blame, as numbered in the group, or None.
    host
        The machine that this rank runs on; empty when unknown.
    pid
        Its process there, or None.
    peer
        The name of the session that the call was with (:mod:`pccl.p2p`), or None. Sessions have no
        ranks.
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
        """Show the message, and what it blames as far as that is known."""
        blamed = {"rank": self.rank, "host": self.host, "pid": self.pid, "peer": self.peer}
        known = [f", {name}={value!r}" for name, value in blamed.items() if value not in (None, "")]
        return f"{type(self).__name__}({str(self)!r}{''.join(known)})"


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong: mend the call."""

    code = "invalid_argument"


class UnsupportedError(Error, NotImplementedError):
    """The build or the combination cannot do it: choose another."""

    code = "unsupported"


class UnavailableError(Error):
    """Not here or not now: try elsewhere or later."""

    code = "unavailable"


class PeerLostError(Error, ConnectionError):
    """A peer died, closed its connection or broke the protocol; ``rank`` or ``peer`` says which."""

    code = "peer_lost"


class TimeoutError(Error, builtins.TimeoutError):
    """A deadline passed; the message names who is missing."""

    code = "timeout"


class MismatchError(Error):
    """Two ranks disagree about one operation: mend the program."""

    code = "mismatch"


class AbortedError(Error):
    """Somebody called abort."""

    code = "aborted"


class ResourceExhaustedError(Error):
    """Memory, descriptors or slots ran out: free some or raise the bound."""

    code = "resource_exhausted"


class InternalError(Error):
    """A fault of PCCL."""

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


def __getattr__(name: str) -> object:
    if name != "CollectiveTimeoutError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_of_former_name("pccl.CollectiveTimeoutError", "pccl.TimeoutError")
    return TimeoutError


def class_of(code: str) -> type[Error]:
    """Return the class for a code of the C++ library."""
    return _CLASSES.get(code, InternalError)


def error_of(
    code: str, message: str, rank: int, host: str = "", pid: int = 0, peer: str = ""
) -> Error:
    """Return the exception for a status of the C++ library.

    A negative rank blames nobody, a process 0 is not known, and no peer is an empty name.
    """
    return class_of(code)(message, None if rank < 0 else rank, host, pid or None, peer or None)

# SPDX-License-Identifier: Apache-2.0
"""Exchange between the ranks of one host, for launchers without a key-value store.

Rank 0 listens at an abstract unix name that contains the launcher's name of the job. The kernel
shows both sides the user of the other one, so that no other user takes part, and the name vanishes
with the process. Rank 0 gives the name up when each rank has the text, so that the next program of
the same job can use it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import struct
import threading
import time

from pccl.errors import TimeoutError as PcclTimeoutError
from pccl.errors import UnavailableError
from pccl.launchers.wire import Wire

__all__ = ["SameHostExchange"]

_PAUSE_S = 0.02
_REQUEST_S = 5.0  # for the line of a client
_CREDENTIALS = struct.Struct("iII")  # pid, uid, gid
_ABSENT = (errno.ECONNREFUSED, errno.ENOENT)


class SameHostExchange:
    """Exchange whose ranks are processes of one user on one host."""

    def __init__(self, job: str, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        digest = hashlib.sha256(f"{os.getuid()}/{job}".encode()).hexdigest()
        self._address = f"\0pccl-launcher-{digest[:32]}"
        self._what = f"rank 0 of the job {job} on this host"

    def share(self, text: str | None, deadline: float) -> str:
        """Return the text of rank 0, which continues to pass it on from a thread of its own."""
        if text is None:
            return self._fetch(deadline)
        listener = self._listen()
        arguments = (listener, text, self._size, deadline)
        threading.Thread(target=_serve, args=arguments, name="pccl-launcher", daemon=True).start()
        return text

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(self._address)
        except OSError as error:
            listener.close()
            raise UnavailableError(
                f"{self._what} cannot listen at {self._address[1:]} ({error.strerror}); does "
                "another process of this job have rank 0?"
            ) from None
        listener.listen(self._size)
        return listener

    def _fetch(self, deadline: float) -> str:
        """Request the text until it comes: an earlier program may close its socket late."""
        while True:
            wire = Wire(self._connect(deadline), self._what)
            try:
                wire.send(f"{self._rank}\n".encode("ascii"), deadline)
                return wire.receive_line(deadline)
            except UnavailableError:
                if time.monotonic() >= deadline:
                    raise
            finally:
                wire.close()
            time.sleep(_PAUSE_S)

    def _connect(self, deadline: float) -> socket.socket:
        """Connect as soon as rank 0 listens, and check its user."""
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self._address)
            except OSError as error:
                connection.close()
                if error.errno not in _ABSENT:
                    raise UnavailableError(
                        f"{self._what} cannot be reached: {error.strerror}"
                    ) from None
            else:
                if _user_of(connection) == os.getuid():
                    return connection
                user = _user_of(connection)
                connection.close()
                raise UnavailableError(
                    f"user {user} listens at {self._address[1:]} instead of {self._what}"
                )
            if time.monotonic() >= deadline:
                raise PcclTimeoutError(
                    f"{self._what} did not listen in time; has it called this?", rank=0
                )
            time.sleep(_PAUSE_S)


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(raw)[1]
    return user


def _serve(listener: socket.socket, text: str, size: int, deadline: float) -> None:
    """Pass the text to each other rank once, or until the deadline."""
    waiting = set(range(1, size))
    with listener:
        while waiting and (left := deadline - time.monotonic()) > 0:
            listener.settimeout(min(left, threading.TIMEOUT_MAX))
            with contextlib.suppress(OSError, UnavailableError, PcclTimeoutError, ValueError):
                connection, _ = listener.accept()
                waiting.discard(_pass_on(connection, text, waiting))


def _pass_on(connection: socket.socket, text: str, waiting: set[int]) -> int:
    """Pass the text to a rank of this user that still waits for it, and return the rank."""
    with connection:
        if _user_of(connection) != os.getuid():
            raise UnavailableError("a process of another user has connected")
        deadline = time.monotonic() + _REQUEST_S
        wire = Wire(connection, "a rank of this host")
        rank = int(wire.receive_line(deadline))
        if rank not in waiting:
            raise UnavailableError(f"rank {rank} has connected already")
        wire.send(f"{text}\n".encode("ascii"), deadline)
        return rank

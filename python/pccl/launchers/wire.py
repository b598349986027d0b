# SPDX-License-Identifier: Apache-2.0
"""Connection to the server of a launcher, with a deadline for each step.

The descriptor may be shared with an MPI library of this process. It stays blocking, because that
mode belongs to all who share it, and no byte beyond the present answer is read.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import time

from pccl.errors import TimeoutError as PcclTimeoutError
from pccl.errors import UnavailableError

__all__ = ["LONGEST_ANSWER", "Wire", "is_socket", "shown_answer"]

LONGEST_ANSWER = 1 << 16  # bytes
_LONGEST_SHOWN = 80


def is_socket(descriptor: int) -> bool:
    """Return whether a descriptor of this process is an open socket."""
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except (OSError, OverflowError):
        return False


def shown_answer(answer: str) -> str:
    """Return an answer for an error message, shortened."""
    return repr(answer if len(answer) <= _LONGEST_SHOWN else f"{answer[:_LONGEST_SHOWN]}...")


class Wire:
    """Connected socket whose every step has a deadline of ``time.monotonic()``."""

    def __init__(self, connection: socket.socket, server: str) -> None:
        self._socket = connection
        self.server = server  # for messages: "the PMI-1 server of mpiexec (PMI_FD=11)"

    @classmethod
    def inherited(cls, descriptor: int, server: str) -> Wire:
        """Return a wire over a copy of a descriptor, which stays open when the wire is closed."""
        return cls(socket.socket(fileno=os.dup(descriptor)), server)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def send(self, data: bytes, deadline: float) -> None:
        """Send all bytes."""
        flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        while data:
            self._await(select.POLLOUT, deadline)
            try:
                data = data[self._socket.send(data, flags) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise UnavailableError(
                    f"{self.server} takes no request ({error.strerror}); has an earlier program of "
                    "this task ended its session?"
                ) from None

    def receive(self, count: int, deadline: float) -> bytes:
        """Receive exactly ``count`` bytes."""
        data = b""
        while len(data) < count:
            self._await(select.POLLIN, deadline)
            data += self._receive_some(count - len(data), 0)
        return data

    def receive_line(self, deadline: float) -> str:
        """Receive a line, without its end; bytes after it stay in the socket."""
        line = b""
        while not line.endswith(b"\n"):
            self._await(select.POLLIN, deadline)
            seen = self._receive_some(LONGEST_ANSWER, socket.MSG_PEEK)
            if not seen:
                continue
            end = seen.find(b"\n")
            line += self._receive_some(end + 1 if end >= 0 else len(seen), 0)
            if len(line) > LONGEST_ANSWER:
                raise self.wrong(self.text_of(line), f"a line of at most {LONGEST_ANSWER} bytes")
        return self.text_of(line[:-1])

    def wrong(self, answer: str, expected: str) -> UnavailableError:
        """Return the error of an answer that does not fit."""
        return UnavailableError(
            f"{self.server} answered {shown_answer(answer)} instead of {expected}"
        )

    def text_of(self, data: bytes) -> str:
        """Return the text of bytes, which must be ASCII."""
        try:
            return data.decode("ascii")
        except UnicodeDecodeError:
            raise self.wrong(data.decode("ascii", "backslashreplace"), "ASCII text") from None

    def _receive_some(self, count: int, flags: int) -> bytes:
        try:
            data = self._socket.recv(count, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise UnavailableError(f"{self.server} is gone: {error.strerror}") from None
        if not data:
            raise UnavailableError(f"{self.server} has closed its connection; did it end?")
        return data

    def _await(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        while (left := deadline - time.monotonic()) > 0:
            if poll.poll(min(left * 1000 + 1, 60_000)):
                return
        raise PcclTimeoutError(f"{self.server} did not answer in time")

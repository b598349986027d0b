# SPDX-License-Identifier: Apache-2.0
"""Client of PMI-1: lines of ``key=value`` words, of which the first is the command.

MPICH's and Intel's mpiexec and Flux serve it at PMI_FD, a socket that each process inherits
(https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_13.html). mpiexec of MPICH
with ``-pmi-port`` serves it at PMI_PORT, where the process first sends its number (PMI_ID).
"""

from __future__ import annotations

import dataclasses
import socket
import time

from pccl.errors import UnavailableError
from pccl.launchers.wire import Wire

__all__ = ["Pmi1Store", "PmiPort", "words_of"]

_SETTINGS = 3  # lines after initack: size, rank, debug


class Pmi1Store:
    """Key-value store of a PMI-1 server."""

    def __init__(self, wire: Wire, deadline: float) -> None:
        self._wire = wire
        answer = self._call("init", "response_to_init", deadline, pmi_version=1, pmi_subversion=1)
        if answer.get("pmi_version") != "1":
            raise wire.wrong(f"pmi_version={answer.get('pmi_version')}", "pmi_version=1")
        limits = self._call("get_maxes", "maxes", deadline)
        self._longest = self._number(limits, "vallen_max")
        self._name = self._text(self._call("get_my_kvsname", "my_kvsname", deadline), "kvsname")

    def put(self, key: str, value: str, deadline: float) -> None:
        """Set a key; the server refuses a key that exists."""
        if len(value) >= self._longest:
            raise UnavailableError(
                f"{self._wire.server} takes values of less than {self._longest} characters, and "
                f"addresses and secret have {len(value)}; select fewer interfaces by "
                "PCCL_SOCKET_IFNAME"
            )
        self._call("put", "put_result", deadline, kvsname=self._name, key=key, value=value)

    def fence(self, deadline: float) -> None:
        """Wait at the server's barrier."""
        self._call("barrier_in", "barrier_out", deadline)

    def get(self, key: str, deadline: float) -> str:
        """Return the value of a key."""
        found = self._call("get", "get_result", deadline, kvsname=self._name, key=key)
        return self._text(found, "value")

    def close(self, deadline: float) -> None:
        """End the session: mpiexec ends a job whose process ends with an open one."""
        self._call("finalize", "finalize_ack", deadline)
        self._wire.close()

    def _call(
        self, command: str, expected: str, deadline: float, **words: object
    ) -> dict[str, str]:
        """Send a command, and return the words of the answer, of which the first must fit."""
        request = "".join(f" {name}={value}" for name, value in words.items())
        self._wire.send(f"cmd={command}{request}\n".encode("ascii"), deadline)
        line = self._wire.receive_line(deadline)
        answer = words_of(line)
        if answer.get("cmd") != expected:
            raise self._wire.wrong(line, f"cmd={expected}")
        if answer.get("rc", "0") != "0":
            raise UnavailableError(
                f"{self._wire.server} refused cmd={command}: rc={answer['rc']}, "
                f"{answer.get('msg', 'without a reason')}"
            )
        return answer

    def _text(self, answer: dict[str, str], name: str) -> str:
        if name not in answer:
            raise self._wire.wrong(str(answer), f"an answer with {name}=")
        return answer[name]

    def _number(self, answer: dict[str, str], name: str) -> int:
        text = self._text(answer, name)
        if not (text.isascii() and text.isdigit()):
            raise self._wire.wrong(f"{name}={text}", f"{name}= with a number")
        return int(text)


def words_of(line: str) -> dict[str, str]:
    """Return the words of a line by name; words without ``=`` are left out."""
    pairs = (word.partition("=") for word in line.split())
    return {name: value for name, equals, value in pairs if equals}


@dataclasses.dataclass(frozen=True)
class PmiPort:
    """Connection to the server at PMI_PORT, which has sent rank and size of this process."""

    wire: Wire
    rank: int
    size: int

    @classmethod
    def connected(cls, address: str, pmi_id: str, server: str, deadline: float) -> PmiPort:
        """Return the one connection of this process, to ``host:port`` as the process PMI_ID."""
        if (address, pmi_id) not in _ports:
            _ports[address, pmi_id] = cls._connect(address, pmi_id, server, deadline)
        return _ports[address, pmi_id]

    @classmethod
    def _connect(cls, address: str, pmi_id: str, server: str, deadline: float) -> PmiPort:
        host, _, port = address.rpartition(":")
        left = max(0.001, deadline - time.monotonic())
        try:
            connection = socket.create_connection((host, int(port)), left)
        except (OSError, ValueError, OverflowError) as error:
            raise UnavailableError(f"{server} cannot be reached: {error}") from None
        connection.settimeout(None)
        wire = Wire(connection, server)
        wire.send(f"cmd=initack pmiid={pmi_id}\n".encode("ascii"), deadline)
        line = wire.receive_line(deadline)
        if words_of(line).get("cmd") != "initack":
            raise wire.wrong(line, "cmd=initack")
        settings = dict(_setting(wire, deadline) for _ in range(_SETTINGS))
        if not settings.get("rank", -1) < settings.get("size", 0):
            raise wire.wrong(str(settings), "rank and size")
        return cls(wire, settings["rank"], settings["size"])


_ports: dict[tuple[str, str], PmiPort] = {}  # because the server takes one of each process


def _setting(wire: Wire, deadline: float) -> tuple[str, int]:
    """Receive a line such as ``cmd=set size=4``."""
    line = wire.receive_line(deadline)
    words = words_of(line)
    command = words.pop("cmd", "")
    name, value = next(iter(words.items()), ("", ""))
    if command != "set" or not (value.isascii() and value.isdigit()):
        raise wire.wrong(line, "cmd=set with a number")
    return name, int(value)

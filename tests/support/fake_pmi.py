# SPDX-License-Identifier: Apache-2.0
"""Servers of PMI-1 and PMI-2 as launchers have them, and ranks that are started on them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OF_LAUNCHERS = (
    *("RANK", "WORLD_SIZE", "MASTER_", "LOCAL_", "GROUP_", "TORCHELASTIC_", "PCCL_STARTER"),
    *("OMPI_", "PMI_", "PMIX_", "PRTE_", "SLURM_", "FLUX_", "PALS_", "MPI_LOCAL", "I_MPI_"),
    *("HYD", "PET_", "JOB_COMPLETION_INDEX", "KUBERNETES_"),
)


def environment(**variables: object) -> dict[str, str]:
    """Return this process's environment without launchers, and with these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_LAUNCHERS)}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


class FakePmi:
    """PMI-1 and PMI-2 server of one job: the key-value store and the barrier."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.finalized = 0
        self._values: dict[str, str] = {}
        self._barrier = threading.Barrier(size)
        self._lock = threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests of one rank until it leaves."""
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as stream:
            first = stream.readline().decode()
            version = "2" if "pmi_version=2" in first else "1"
            _answer(stream, f"cmd=response_to_init pmi_version={version} pmi_subversion=1 rc=0\n")
            request = self._pmi2 if version == "2" else self._pmi1
            while request(stream):
                pass

    def _pmi1(self, stream: object) -> bool:
        line = stream.readline().decode()  # type: ignore[attr-defined]
        words = dict(word.split("=", 1) for word in line.split())
        command = words.get("cmd")
        if command == "get_maxes":
            _answer(stream, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n")
        elif command == "get_my_kvsname":
            _answer(stream, "cmd=my_kvsname kvsname=kvs_1\n")
        elif command == "put":
            self._put(words["key"], words["value"])
            _answer(stream, "cmd=put_result rc=0 msg=success\n")
        elif command == "get":
            value = self._values.get(words["key"])
            found = "rc=-1 msg=key_not_found" if value is None else f"rc=0 value={value}"
            _answer(stream, f"cmd=get_result {found}\n")
        elif command == "barrier_in":
            self._barrier.wait()
            _answer(stream, "cmd=barrier_out\n")
        elif command == "finalize":
            self._finalize()
            _answer(stream, "cmd=finalize_ack\n")
        return command not in (None, "finalize")

    def _pmi2(self, stream: object) -> bool:
        length = stream.read(6)  # type: ignore[attr-defined]
        if not length:
            return False
        text = stream.read(int(length)).decode()  # type: ignore[attr-defined]
        words = dict(word.split("=", 1) for word in text.split(";") if word)
        command, more = words["cmd"], ""
        if command == "kvs-put":
            self._put(words["key"], words["value"])
        elif command == "kvs-fence":
            self._barrier.wait()
        elif command == "kvs-get":
            value = self._values.get(words["key"])
            more = "found=FALSE;" if value is None else f"found=TRUE;value={value};"
        elif command == "finalize":
            self._finalize()
        answer = f"cmd={command}-response;rc=0;{more}"
        _answer(stream, f"{len(answer):6d}{answer}")
        return command != "finalize"

    def _put(self, key: str, value: str) -> None:
        with self._lock:
            assert key not in self._values, f"{key} was put twice"
            self._values[key] = value

    def _finalize(self) -> None:
        with self._lock:
            self.finalized += 1


def _answer(stream: object, text: str) -> None:
    stream.write(text.encode())  # type: ignore[attr-defined]
    stream.flush()  # type: ignore[attr-defined]


def served(answer: Callable[[socket.socket], None]) -> socket.socket:
    """Return one end of a connection whose other end a thread serves."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=answer, args=(theirs,), daemon=True).start()
    return ours


def scripted(*answers: bytes) -> socket.socket:
    """Return a connection to a server that sends these answers, one for each request.

    It is silent after the last one; an empty answer ends the server's side.
    """

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            for reply in answers:
                if reply:
                    connection.recv(4096)
                    connection.sendall(reply)
                else:
                    connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass

    return served(answer)


def start_ranks(
    server: FakePmi, script: str, variables: Callable[[int], Mapping[str, object]]
) -> list[subprocess.Popen[str]]:
    """Start the ranks of a job with PMI_FD, PMI_RANK and PMI_SIZE, and further variables."""
    ranks = []
    for rank in range(server.size):
        connection = served(server.serve)
        place = {"PMI_FD": connection.fileno(), "PMI_RANK": rank, "PMI_SIZE": server.size}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", script],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(**place, **variables(rank)),
                pass_fds=[connection.fileno()],
            )
        )
        connection.close()
    return ranks

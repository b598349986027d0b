# SPDX-License-Identifier: Apache-2.0
"""A store that lies: with PCCL_SECRET_FILE nobody can place himself between the ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.multiproc

RANK = """
import os
import re
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pccl

rank, folder, forged = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
relayed = 0


def pump(source, sink):
    global relayed
    while data := source.recv(65536):
        relayed += len(data)
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def relay_to(port):
    '''Somebody in the middle: gives the port at which he listens.'''
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            caller, _ = listener.accept()
            callee = socket.create_connection(("127.0.0.1", port))
            for ends in ((caller, callee), (callee, caller)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


class LyingStore:
    '''Entries are files; one of them names the relay's port instead of the first it has.'''

    def set(self, key, value):
        draft = folder / f".{key}.{rank}".replace("/", "_")
        draft.write_bytes(value)
        draft.rename(folder / key.replace("/", "_"))

    def get(self, key):
        path = folder / key.replace("/", "_")
        if not path.exists():
            return None
        value = path.read_bytes()
        if not forged or not key.endswith(forged):
            return value
        (port,) = re.findall(rb"127\\.0\\.0\\.1:(\\d{5})", value)[:1]
        return value.replace(port, b"%d" % relay_to(int(port)), 1)

    def add(self, key, delta):
        raise NotImplementedError


try:
    comm = pccl.Communicator(rank=rank, world_size=2, rendezvous=LyingStore(), timeout=20.0)
    x = np.full(100_000, rank + 1.0)
    comm.all_reduce(x)
    assert (x == 3).all()
    comm.barrier()
    print("done, relayed", relayed)
except pccl.Error as error:
    print(type(error).__name__, error, "relayed", relayed)
"""


def secret_file(folder: Path, name: str, mode: int = 0o600) -> str:
    path = folder / name
    path.write_bytes(os.urandom(32))
    path.chmod(mode)
    return str(path)


def run(folder: Path, secrets: Sequence[str], forged: Sequence[str] = ("", "")) -> list[str]:
    """Give what ranks 0 and 1 print, whose stores forge one entry each."""
    store = folder / "store"
    store.mkdir()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(store), forged[rank]],
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PCCL_SECRET_FILE": secrets[rank],
                "PCCL_TRANSPORTS": "tcp",
                "PCCL_SOCKET_IFNAME": "=lo",
            },
        )
        for rank in range(2)
    ]
    return [process.communicate(timeout=60)[0] for process in ranks]


def test_ranks_with_one_secret_meet(tmp_path: Path) -> None:
    output = run(tmp_path, [secret_file(tmp_path, "secret")] * 2)
    assert output == ["done, relayed 0\n"] * 2


@pytest.mark.parametrize(
    ("liar", "entry"), [(0, "/endpoint/1"), (1, "/roster/0"), (1, "pccl/incarnation")]
)
def test_a_forged_entry_is_refused(tmp_path: Path, liar: int, entry: str) -> None:
    """Who is deceived says so; nothing goes through the hands of who deceives."""
    forged = ["", ""]
    forged[liar] = entry
    output = run(tmp_path, [secret_file(tmp_path, "secret")] * 2, forged)
    assert f'{entry}" in the rendezvous store does not prove the secret' in output[liar], output
    for line in output:
        assert line.endswith("relayed 0\n"), output
        assert "Error" in line, output


def test_ranks_with_different_secrets_report_it(tmp_path: Path) -> None:
    output = run(tmp_path, [secret_file(tmp_path, "one"), secret_file(tmp_path, "other")])
    for line in output:
        assert "PCCL_SECRET_FILE: give all ranks the same file" in line, output


@pytest.mark.parametrize("without", [0, 1])
def test_a_rank_without_the_secret_gets_an_error(tmp_path: Path, without: int) -> None:
    secrets = [secret_file(tmp_path, "secret")] * 2
    secrets[without] = ""
    for line in run(tmp_path, secrets):
        assert "PCCL_SECRET_FILE" in line


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    output = run(tmp_path, [secret_file(tmp_path, "secret", 0o644)] * 2)
    for line in output:
        assert "may be read by other users (mode 0644)" in line, output
        assert "chmod 600" in line

"""Strangers at every door of a running job: it goes on, and each is in the log once."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.multiproc
RANK = """
import select
import sys
import numpy as np
import pccl

rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
comm = pccl.Communicator(rank=rank, world_size=size, rendezvous=store, timeout=60.0)
print("ready", flush=True)
rounds = 0
go_on = np.ones(1, dtype=np.int32)
while go_on[0]:
    x = np.full(5000, rank + 1.0)
    comm.all_reduce(x)
    assert (x == size * (size + 1) / 2).all()
    rounds += 1
    if rank == 0 and rounds % 50 == 0:
        go_on[0] = not select.select([sys.stdin], [], [], 0)[0]
    comm.broadcast(go_on)
# Whoever connects after the strangers is still let in.
other = pccl.Communicator(rank=rank, world_size=size, rendezvous=sys.argv[4], timeout=60.0)
other.barrier()
print("rounds", rounds, flush=True)
"""
HELLO = struct.Struct("<4sI16s32s")
PROOF_BYTES = 64
CLIENT_PROOF_BYTES = 112


class Door(NamedTuple):
    """Where a rank listens: an address of AF_INET or a name of AF_UNIX."""

    family: int
    address: object

    def knock(self) -> socket.socket:
        stranger = socket.socket(self.family, socket.SOCK_STREAM)
        stranger.settimeout(20)
        stranger.connect(self.address)
        return stranger


def doors_of(pid: int) -> list[Door]:
    """Return everything that a process listens at, but for the rendezvous store's port."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            match = re.match(r"socket:\[(\d+)\]", str(entry.readlink()))
            if match:
                inodes.add(match[1])
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes and fields[3] == "0A":
            host, port = fields[1].split(":")
            address = socket.inet_ntoa(struct.pack("<I", int(host, 16)))
            found.append(Door(socket.AF_INET, (address, int(port, 16))))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        is_listening = int(fields[3], 16) & 0x10000
        if fields[6] in inodes and is_listening and len(fields) > 7:
            found.append(Door(socket.AF_UNIX, "\0" + fields[7].removeprefix("@")))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Job:
    """Two ranks that reduce until they are told to end."""

    def __init__(self, folder: Path, transports: str) -> None:
        self.store_port = free_port()
        self.logs = [folder / f"log{rank}" for rank in range(2)]
        environment = {**os.environ, "PCCL_LOG_LEVEL": "info", "PCCL_TRANSPORTS": transports}
        self.ranks = []
        stores = [f"tcp://127.0.0.1:{self.store_port}", f"tcp://127.0.0.1:{free_port()}"]
        for rank, log in enumerate(self.logs):
            with log.open("w") as err:
                self.ranks.append(
                    subprocess.Popen(
                        [sys.executable, "-c", RANK, str(rank), "2", *stores],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=err,
                        text=True,
                        env=environment,
                    )
                )
        for process in self.ranks:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def doors(self) -> list[tuple[int, Door]]:
        return [
            (rank, door)
            for rank, process in enumerate(self.ranks)
            for door in doors_of(process.pid)
            if door.address != ("127.0.0.1", self.store_port)
        ]

    def refusals(self, rank: int) -> list[str]:
        return [line for line in self.logs[rank].read_text().splitlines() if "refused a" in line]

    def end(self) -> None:
        for process in self.ranks:
            out, _ = process.communicate("end\n", timeout=60)
            assert process.returncode == 0, self.logs[0].read_text() + self.logs[1].read_text()
            assert int(out.split()[1]) > 0


@contextlib.contextmanager
def running(folder: Path, transports: str) -> Iterator[Job]:
    job = Job(folder, transports)
    try:
        yield job
        job.end()
    finally:
        for process in job.ranks:
            process.kill()
            process.wait()


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def is_shut(stranger: socket.socket) -> bool:
    """Read what the door says until it is closed."""
    with contextlib.suppress(ConnectionError):
        while stranger.recv(4096):
            pass
    stranger.close()
    return True


def hello(group: bytes = bytes(16), version: int = 1) -> bytes:
    return HELLO.pack(b"PCCL", version, group, os.urandom(32))


def garbage(door: Door) -> None:
    stranger = door.knock()
    stranger.sendall(random.Random(1).randbytes(200))
    assert is_shut(stranger)


def a_web_browser(door: Door) -> None:
    stranger = door.knock()
    stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
    assert is_shut(stranger)


def another_version(door: Door) -> None:
    stranger = door.knock()
    stranger.sendall(hello(version=99))
    assert is_shut(stranger)


def a_wrong_secret(door: Door) -> None:
    stranger = door.knock()
    stranger.sendall(hello())
    assert len(stranger.recv(PROOF_BYTES)) == PROOF_BYTES
    stranger.sendall(os.urandom(CLIENT_PROOF_BYTES))
    assert is_shut(stranger)


def a_proof_sent_back(door: Door) -> None:
    """Reflect what the server proves with."""
    stranger = door.knock()
    stranger.sendall(hello())
    proof = stranger.recv(PROOF_BYTES)
    stranger.sendall(bytes(CLIENT_PROOF_BYTES - 32) + proof[32:])
    assert is_shut(stranger)


def an_oversized_frame(door: Door) -> None:
    """Follow a whole handshake's worth of bytes with megabytes; nobody reads them."""
    stranger = door.knock()
    with contextlib.suppress(ConnectionError):
        stranger.sendall(hello() + os.urandom(CLIENT_PROOF_BYTES) + bytes(8 << 20))
    assert is_shut(stranger)


STRANGERS = [
    garbage,
    a_web_browser,
    another_version,
    a_wrong_secret,
    a_proof_sent_back,
    an_oversized_frame,
]


@pytest.mark.parametrize("transports", ["shm,tcp", "tcp"])
def test_each_stranger_is_refused_once_and_the_job_goes_on(tmp_path: Path, transports: str) -> None:
    with running(tmp_path, transports) as job:
        doors = job.doors()
        assert {door.family for _, door in doors} == (
            {socket.AF_INET, socket.AF_UNIX} if "shm" in transports else {socket.AF_INET}
        )
        for stranger in STRANGERS:
            for rank, door in doors:
                before = len(job.refusals(rank))
                stranger(door)
                assert until(lambda r=rank, b=before: len(job.refusals(r)) > b), stranger.__name__
                assert len(job.refusals(rank)) == before + 1, stranger.__name__


def test_a_slow_stranger_is_shut_out_in_the_end(tmp_path: Path) -> None:
    """One byte now and then, as slow as can be; 5 s is what a handshake may take."""
    with running(tmp_path, "shm,tcp") as job:
        doors = job.doors()
        before = [len(job.refusals(rank)) for rank in range(2)]
        strangers = [door.knock() for _, door in doors]

        def dribble(stranger: socket.socket) -> None:
            with contextlib.suppress(OSError):
                for byte in hello() * 2:
                    stranger.send(bytes([byte]))
                    time.sleep(0.2)

        threads = [threading.Thread(target=dribble, args=(s,), daemon=True) for s in strangers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        counts = [sum(rank == own for own, _ in doors) for rank in range(2)]
        assert until(lambda: [len(job.refusals(r)) - before[r] for r in range(2)] == counts), (
            job.refusals(0)
        )


def test_a_thousand_strangers_at_once_keep_nobody_out(tmp_path: Path) -> None:
    with contextlib.ExitStack() as strangers, running(tmp_path, "shm,tcp") as job:
        rank, door = next((r, d) for r, d in job.doors() if d.family == socket.AF_INET)
        before = len(job.refusals(rank))
        for _ in range(1000):
            stranger = strangers.enter_context(socket.socket(door.family, socket.SOCK_STREAM))
            stranger.setblocking(False)
            stranger.connect_ex(door.address)
        assert until(lambda: len(job.refusals(rank)) > before + 128)  # which is one roomful
        # Now the ranks finish, and meet in another group.

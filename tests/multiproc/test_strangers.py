# SPDX-License-Identifier: Apache-2.0
"""Strangers at every door of a running job: it goes on, and the log tells of them in few lines."""

from __future__ import annotations

import contextlib
import fcntl
import hmac
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

from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

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
SERVER_PROOF = struct.Struct("<4s32s32s")
REQUEST = struct.Struct("<iiiiIBBH64s")
CLIENT_PROOF_BYTES = REQUEST.size + 32
ACCEPTED = b"\x01"
STORE = b"pccl store".ljust(16, b"\0")  # the group whose secret its handshake proves
NOBODY = 65534  # a user
# What the library counts instead of writing a line for each.
MOST_LINES = 40


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


def start_rank(
    rank: int, stores: list[str], err: IO[str] | int, **environment: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RANK, str(rank), "2", *stores],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=err,
        text=True,
        env={**os.environ, "PCCL_LOG_LEVEL": "info", **environment},
    )


class Job:
    """Two ranks that reduce until they are told to end."""

    def __init__(self, folder: Path, transports: str, err: int | None = None) -> None:
        self.store_port = free_port()
        self.logs = [folder / f"log{rank}" for rank in range(2)]
        self.ranks = []
        stores = [f"tcp://127.0.0.1:{self.store_port}", f"tcp://127.0.0.1:{free_port()}"]
        for rank, path in enumerate(self.logs):
            with path.open("w") as log:
                to = log if err is None else err
                self.ranks.append(start_rank(rank, stores, to, PCCL_TRANSPORTS=transports))
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

    def count_of_refusals(self, rank: int) -> int:
        """Count those that have no line of their own, too, as far as the log has told of them."""
        counts = re.findall(r"(\d+) more connections refused", self.logs[rank].read_text())
        return len(self.refusals(rank)) + sum(map(int, counts))

    def end(self) -> None:
        for process in self.ranks:
            out, _ = process.communicate("end\n", timeout=60)
            assert process.returncode == 0, self.logs[0].read_text() + self.logs[1].read_text()
            assert int(out.split()[1]) > 0


@contextlib.contextmanager
def running(folder: Path, transports: str, err: int | None = None) -> Iterator[Job]:
    job = Job(folder, transports, err)
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


def hello(group: bytes = bytes(16), version: int = 8) -> bytes:
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
    assert len(stranger.recv(SERVER_PROOF.size)) == SERVER_PROOF.size
    stranger.sendall(os.urandom(CLIENT_PROOF_BYTES))
    assert is_shut(stranger)


def a_proof_sent_back(door: Door) -> None:
    """Reflect what the server proves with."""
    stranger = door.knock()
    stranger.sendall(hello())
    proof = stranger.recv(SERVER_PROOF.size)
    stranger.sendall(bytes(REQUEST.size) + proof[-32:])
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
        held = []
        for _ in range(1000):
            stranger = strangers.enter_context(socket.socket(door.family, socket.SOCK_STREAM))
            stranger.setblocking(False)
            stranger.connect_ex(door.address)
            held.append(stranger)
        held[200].settimeout(20)  # one roomful is 128
        assert is_shut(held[200])
        # Now the ranks finish, and meet in another group.
    assert until(lambda: job.count_of_refusals(rank) > 128)


def test_a_flood_leaves_few_lines(tmp_path: Path) -> None:
    """Who knocks 2000 times is counted; another's mistake still has its line."""
    with running(tmp_path, "tcp") as job:
        rank, door = job.doors()[0]
        for _ in range(2000):
            garbage(door)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
            other.bind(("127.0.0.2", 0))
            other.settimeout(20)
            other.connect(door.address)
            other.sendall(hello(version=99))
            is_shut(other)
    assert until(lambda: job.count_of_refusals(rank) >= 2001)
    assert len(job.refusals(rank)) < MOST_LINES, len(job.refusals(rank))
    assert any("127.0.0.2" in line and "version 99" in line for line in job.refusals(rank))


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """Give the writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"\n")
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    yield writer
    os.close(reader)
    os.close(writer)


def test_a_full_stderr_blocks_no_rank(tmp_path: Path) -> None:
    """Each of 10,000 refusals is a line; the thread that accepts goes on accepting."""
    with full_pipe() as err, running(tmp_path, "shm,tcp", err) as job:
        doors = [door for _, door in job.doors()]
        for number in range(10_000):
            with doors[number % len(doors)].knock() as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))


HOLD_SLOTS = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
held = []
for _ in range(300):
    stranger = socket.socket(socket.AF_UNIX)
    stranger.settimeout(20)
    stranger.connect("\\0" + sys.argv[2])
    held.append(stranger)
for stranger in held:
    try:
        assert stranger.recv(1) == b""
    except ConnectionResetError:
        pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user as well")
def test_another_user_gets_no_slot_at_a_unix_socket(tmp_path: Path) -> None:
    with running(tmp_path, "shm,tcp") as job:
        rank, door = next((r, d) for r, d in job.doors() if d.family == socket.AF_UNIX)
        name = str(door.address).removeprefix("\0")
        subprocess.run(
            [sys.executable, "-c", HOLD_SLOTS, str(NOBODY), name], check=True, timeout=60
        )
    assert until(lambda: job.count_of_refusals(rank) >= 300)
    for line in job.refusals(rank):
        assert f"user {NOBODY}: it runs as another user" in line, line


def enter_store(port: int, secret: bytes = bytes(32)) -> socket.socket | None:
    """Do the handshake of the rendezvous store, as its documentation has it; None where refused."""
    door = Door(socket.AF_INET, ("127.0.0.1", port))
    stranger = door.knock()
    greeting = hello(STORE)
    stranger.sendall(greeting)
    magic, nonce, proof = SERVER_PROOF.unpack(stranger.recv(SERVER_PROOF.size, socket.MSG_WAITALL))
    assert magic == b"PCCL"

    def prove(label: bytes, request: bytes) -> bytes:
        return hmac.digest(secret, label.ljust(16, b"\0") + greeting + nonce + request, "sha256")

    request = REQUEST.pack(0, 0, 0, 1, 0, 0, 0, 0, b"")
    has_the_secret = hmac.compare_digest(proof, prove(b"pccl-server", bytes(REQUEST.size)))
    stranger.sendall(request + prove(b"pccl-client", request))
    verdict = stranger.recv(1)
    assert (verdict == ACCEPTED) == has_the_secret
    if verdict == ACCEPTED:
        return stranger
    assert is_shut(stranger)
    return None


RANK_OF_FEW_DESCRIPTORS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import numpy as np
import pccl

rank, store = int(sys.argv[1]), sys.argv[2]
comm = pccl.Communicator(rank=rank, world_size=2, rendezvous=store, timeout=60.0)
held = []
while rank == 0 and len(held) < 60:
    held.append(os.dup(0))  # what this process has for its own use
x = np.ones(1000)
comm.all_reduce(x)
assert (x == 2).all()
print("done", flush=True)
"""


def silent_strangers(port: int, held: contextlib.ExitStack) -> None:
    for number in range(420):
        stranger = held.enter_context(socket.socket())
        stranger.setblocking(False)
        stranger.connect_ex(("127.0.0.1", port))
        if number % 3 == 0:
            with contextlib.suppress(OSError):
                stranger.send(hello(STORE)[:20])


def noisy_strangers(port: int, held: contextlib.ExitStack) -> None:
    door = Door(socket.AF_INET, ("127.0.0.1", port))
    for stranger in STRANGERS:
        stranger(door)


def strangers_inside(port: int, held: contextlib.ExitStack) -> None:
    """Come in, as anybody may where there is no secret, and misbehave."""
    huge = struct.pack("<I", 0xFFFFFFFF)
    for bytes_ in (huge, bytes(200_000), struct.pack("<I", 100) + b"half", b"\x03\0\0\0zzz"):
        for _ in range(10):
            stranger = enter_store(port)
            assert stranger is not None
            held.enter_context(stranger)
            with contextlib.suppress(OSError):
                stranger.sendall(bytes_)


def refused_strangers(port: int, held: contextlib.ExitStack) -> None:
    for secret in (bytes(32), os.urandom(32)):
        assert enter_store(port, secret) is None


@pytest.mark.parametrize(
    ("attack", "has_secret"),
    [
        (silent_strangers, False),
        (silent_strangers, True),
        (noisy_strangers, False),
        (strangers_inside, False),
        (refused_strangers, True),
    ],
)
def test_strangers_at_the_store(
    tmp_path: Path,
    attack: Callable[[int, contextlib.ExitStack], None],
    has_secret: bool,
) -> None:
    """They come before the ranks do; rank 0 may have 256 descriptors, and keeps some of them."""
    port = free_port()
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    environment = {**os.environ, "PCCL_SECRET_FILE": str(secret)} if has_secret else None
    command = [sys.executable, "-c", RANK_OF_FEW_DESCRIPTORS]
    log = tmp_path / "log"
    ranks = []
    with contextlib.ExitStack() as held, log.open("w") as err:
        for rank in range(2):
            process = subprocess.Popen(
                [*command, str(rank), f"tcp://127.0.0.1:{port}"],
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                env=environment,
            )
            held.callback(process.wait)
            held.callback(process.kill)
            ranks.append(process)
            if rank == 0:
                assert until(lambda: is_listening(port)), log.read_text()
                attack(port, held)
        for process in ranks:
            out, _ = process.communicate(timeout=60)
            assert (process.returncode, out) == (0, "done\n"), log.read_text()
    assert len(log.read_text().splitlines()) < MOST_LINES, log.read_text()


def is_listening(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(f":{port:04X} 00000000:0000 0A" in line for line in lines)

# SPDX-License-Identifier: Apache-2.0
"""Every wait of pccl.p2p looks at its deadline and at Ctrl-C, also while things move."""

from __future__ import annotations

import contextlib
import inspect
import multiprocessing
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl import p2p
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

NBYTES = 4096
LARGE = 16 << 20
CONNECT_S = 1.0
PATIENCE = 60.0
LIMIT_S = 20.0  # far more than any wait here may take, and far less than what never ends


def serve(pipe: Connection, transports: str) -> None:
    """Have a memory, in a process that is stopped by whoever asked for it."""
    with p2p.Session("peer", transports=transports) as session:
        memory = session.allocate(NBYTES)
        pipe.send((session.connection_info(), memory.descriptor().serialize(), os.getpid()))
        pipe.recv()


class Absent:
    """Two sessions that know a peer which is stopped: one gives up soon to connect, one does not.

    ``waits()`` has a call with a timeout for each public member that takes one.
    """

    def __init__(self, transports: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, transports), daemon=True)
        self._process.start()
        info, self._descriptor, pid = self._pipe.recv()
        os.kill(pid, signal.SIGSTOP)
        self.quick = p2p.Session("quick", transports=transports, connect_timeout=CONNECT_S)
        self.patient = p2p.Session("patient", transports=transports, connect_timeout=PATIENCE)
        for session in self.quick, self.patient:
            session.load(info)
        self._silent = socket.create_server(("127.0.0.1", 0))

    def sides(self, session: p2p.Session) -> tuple[p2p.Memory, p2p.RemoteMemory]:
        """Return a memory of the session, and the peer's."""
        local = session.register(np.zeros(NBYTES, np.uint8))
        return local, session.import_memory("peer", self._descriptor)

    def waits(self, session: p2p.Session) -> dict[str, Callable[[Any], object]]:
        local, remote = self.sides(session)
        full = session.transfer("peer", window=1)
        if session is self.patient:
            full.post_send(local, 0, 8)
            full.post_recv(local, 0, 8)
            full.post_read(local, remote)
            full.post_write(local, remote)
        work = session.read(local, remote)
        transfer = session.transfer("peer")
        message = transfer.post_send(local, 0, 8)
        store = p2p.RendezvousStore(f"tcp://127.0.0.1:{free_port()}", host=True)
        port = self._silent.getsockname()[1]
        return {
            "Session.connect": lambda timeout: session.connect("peer", timeout),
            "Session.accept": lambda timeout: session.accept(timeout=timeout),
            "Session.fetch": lambda timeout: session.fetch("peer", "x", timeout),
            "Session.notifications": session.notifications,
            "Work.wait": work.wait,
            "Message.wait": message.wait,
            "Transfer.wait": transfer.wait,
            "Transfer.post_send": lambda timeout: full.post_send(local, 0, 8, timeout=timeout),
            "Transfer.post_recv": lambda timeout: full.post_recv(local, 0, 8, timeout=timeout),
            "Transfer.post_read": lambda timeout: full.post_read(local, remote, timeout=timeout),
            "Transfer.post_write": lambda timeout: full.post_write(local, remote, timeout=timeout),
            "Directory.find": lambda timeout: p2p.Directory(session, store).find("peer", timeout),
            "RendezvousStore.__init__": lambda timeout: p2p.RendezvousStore(
                f"tcp://127.0.0.1:{free_port()}", timeout=timeout
            ),
            "EtcdStore.__init__": lambda timeout: p2p.EtcdStore(
                f"http://127.0.0.1:{port}", timeout=timeout
            ).get("key"),
        }

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._silent.close()
        self.quick.close()
        self.patient.close()


WAITS = [
    f"{kind}.{name}"
    for kind in p2p.__all__
    if inspect.isclass(getattr(p2p, kind))
    for name, member in vars(getattr(p2p, kind)).items()
    if inspect.isfunction(member)
    and (name == "__init__" or not name.startswith("_"))
    and "timeout" in inspect.signature(member).parameters
]
#: Of these ``timeout=None`` is no limit.
UNLIMITED = [name for name in WAITS if name.startswith(("Session", "Work", "Message", "Transfer"))]


@pytest.fixture(scope="module", params=["shm", "tcp"])
def absent(request: pytest.FixtureRequest) -> Iterator[Absent]:
    made = Absent(request.param)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a wait that does not, as far as it looks at signals."""

    def raise_late(*_: object) -> None:
        raise AssertionError(f"it still waits after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, raise_late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_all_that_take_a_timeout_are_looked_at(absent):
    assert set(absent.waits(absent.patient)) == set(WAITS)


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("timeout", [0.05, 0.3])
def test_a_short_timeout_ends_each_wait_for_an_absent_peer(absent, name, timeout):
    wait = absent.waits(absent.patient)[name]
    if name == "Session.notifications":
        assert wait(timeout) == []
    elif name == "EtcdStore.__init__":
        with pytest.raises(pccl.UnavailableError):
            wait(timeout)
    else:
        with pytest.raises(pccl.TimeoutError):
            wait(timeout)


@pytest.mark.parametrize("name", UNLIMITED)
def test_ctrl_c_ends_each_wait_without_a_limit(absent, name):
    wait = absent.waits(absent.patient)[name]
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
        wait(None)


@pytest.mark.parametrize("timeout", [None, 2 * PATIENCE])
def test_connect_timeout_ends_what_needs_a_connection(absent, timeout):
    waits = absent.waits(absent.quick)
    with pytest.raises(pccl.TimeoutError):
        waits["Session.connect"](timeout)
    for name in "Session.fetch", "Work.wait", "Message.wait", "Transfer.wait":
        # Not a timeout, which leaves things going: what has ended does not begin again.
        with pytest.raises(pccl.PeerLostError, match='session "peer"'):
            waits[name](timeout)


@pytest.fixture(params=["shm, mapped", "shm, by the kernel", "tcp, by messages"])
def moving(request: pytest.FixtureRequest) -> Iterator[tuple[p2p.Session, p2p.Session, Any, Any]]:
    """Return two sessions, and a plan that takes some seconds; memory of both."""
    transports = request.param.partition(",")[0]
    with (
        p2p.Session("a", transports=transports) as a,
        p2p.Session("b", transports=transports) as b,
    ):
        a.load(b.connection_info())
        b.load(a.connection_info())
        buffer = np.zeros(LARGE, np.uint8)
        theirs = a.allocate(LARGE) if "mapped" in request.param else a.register(buffer)
        mine = b.register(np.zeros(LARGE, np.uint8))
        remote = b.import_memory("a", theirs.descriptor().serialize())
        warm = b.read(mine, remote)
        warm.wait(PATIENCE)
        assert warm.stats().path == request.param
        yield a, b, (mine, remote), theirs


def plan_of(b: p2p.Session, sides: tuple[p2p.Memory, p2p.RemoteMemory], times: int) -> p2p.Plan:
    """Return a plan of as many times all bytes, which stands for one large transfer."""
    blocks = (0, LARGE, 0, times)
    return b.prepare(sides[0], blocks, sides[1], blocks)


def test_a_timeout_ends_a_wait_while_bytes_move(moving):
    _, b, sides, _ = moving
    plan = plan_of(b, sides, 100)
    for post in b.post_read, b.post_write:
        work = post(plan)
        with pytest.raises(pccl.TimeoutError):
            work.wait(0)
        with pytest.raises(pccl.TimeoutError):
            work.wait(0.001)
        assert not work.done()
        work.wait(PATIENCE)


def test_a_timeout_ends_a_wait_for_messages_while_they_move(moving):
    a, b, (mine, _), theirs = moving
    sends, receives = a.transfer("b", chunk=4096), b.transfer("a")
    a.connect("b", PATIENCE)
    for tag in range(16):
        receives.post_recv(mine, 0, LARGE, tag=tag)
    last = [sends.post_send(theirs, 0, LARGE, tag=tag) for tag in range(16)][-1]
    for wait in last.wait, sends.wait:
        with pytest.raises(pccl.TimeoutError):
            wait(0)
    sends.wait(PATIENCE)
    receives.wait(PATIENCE)


def test_ctrl_c_ends_a_wait_while_bytes_move(moving):
    _, b, sides, _ = moving
    work = b.post_read(plan_of(b, sides, 5000))
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
        work.wait(PATIENCE)
    assert not work.done()


@pytest.mark.parametrize("leave", ["disconnect", "close"])
def test_ctrl_c_ends_what_waits_for_words_to_leave(leave):
    """The peer takes none of them: its program does not look."""
    with p2p.Session("slow", transports="tcp") as slow, p2p.Session("b", transports="tcp") as b:
        b.load(slow.connection_info())
        b.connect("slow", PATIENCE)
        with contextlib.suppress(pccl.ResourceExhaustedError):
            while True:
                b.notify("slow", bytes(16 << 10))
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
            b.disconnect("slow") if leave == "disconnect" else b.close()
        assert b.peers() == []

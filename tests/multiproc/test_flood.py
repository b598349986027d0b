# SPDX-License-Identifier: Apache-2.0
"""Thousands of connections that say nothing at a session's listener keep no peer out."""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from pccl import p2p
from pccl.diagnostics.process_addresses import doors_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

pytestmark = [pytest.mark.multiproc, pytest.mark.alone]
HELD = 8000
PATIENCE = 60.0
ENOUGH = 5.0  # seconds for a peer; 10 to 15 were not, once


def own_session(pipe: Connection, descriptors: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, most))
    with p2p.Session("owner", listen="127.0.0.1", transports="tcp") as session:
        pipe.send(session.connection_info())
        pipe.recv()


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    if usual[1] < HELD + 1000:
        pytest.skip(f"this process may have {usual[1]} descriptors at most (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (HELD + 1000, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


class Flood:
    """Connections to a port, the oldest of which make way for others all the time."""

    def __init__(self, port: int, word: bytes) -> None:
        self._port = port
        self._word = word
        self._held: list[socket.socket] = []
        self._is_over = threading.Event()
        self.is_full = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Flood:
        self._thread.start()
        assert self.is_full.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for each in self._held:
            each.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(OSError):
                stranger = socket.create_connection(("127.0.0.1", self._port), timeout=2)
                self._held.append(stranger)
                stranger.sendall(self._word)
            if len(self._held) >= HELD:
                self.is_full.set()
                self._held.pop(0).close()


@pytest.mark.parametrize("word", [b"", b"P"], ids=["silent", "one byte"])
@pytest.mark.parametrize("descriptors", [64, 1024])
def test_a_flood_keeps_no_peer_out(descriptors: int, word: bytes) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    owner = context.Process(target=own_session, args=(there, descriptors), daemon=True)
    owner.start()
    try:
        assert here.poll(PATIENCE)
        info = here.recv()
        assert owner.pid is not None
        (door,) = doors_of(owner.pid)
        with many_descriptors(), Flood(int(door.rpartition(":")[2]), word):
            for number in range(3):
                with p2p.Session(f"peer-{number}", listen="127.0.0.1", transports="tcp") as peer:
                    peer.load(info)
                    peer.connect("owner", ENOUGH)
        here.send(True)
        owner.join(PATIENCE)
    finally:
        owner.kill()

# SPDX-License-Identifier: Apache-2.0
"""Target of a soak test: a process with a session, which is killed and restarted."""

from __future__ import annotations

import functools
import multiprocessing
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pccl import p2p

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

__all__ = ["MEMORY", "PATIENCE", "TARGET", "Exchange", "Life"]

PATIENCE = 60.0  # seconds, for the other process and for a transfer
MEMORY = 8 << 20
TARGET = "target"


class Exchange(NamedTuple):
    """Tagged message from and to the same offset of both memories."""

    tag: int
    offset: int
    nbytes: int
    is_from_target: bool


def _stamps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, MEMORY, dtype=np.uint8)


def _serve(pipe: Connection, transports: str, seed: int, soaker: bytes) -> None:
    """Run the target: register memory with known contents, and execute requests."""
    with p2p.Session(TARGET, transports=transports) as session:
        near = session.load(soaker)
        memory = session.register(_stamps(seed))
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        while request := pipe.recv():
            what, arguments = request
            if what == "notifications":
                pipe.send(_receive(session, arguments))
            elif what == "part":
                pipe.send(_is_parted(session))
            else:
                pipe.send(_exchange(session.transfer(near, window=64), memory, arguments))


def _receive(session: p2p.Session, wanted: int) -> int:
    """Return the number of received notifications, after a wait for ``wanted``."""
    count = 0
    until = time.monotonic() + PATIENCE
    while count < wanted and time.monotonic() < until:
        count += len(session.notifications(timeout=1.0))
    return count


def _is_parted(session: p2p.Session) -> bool:
    """Wait for the detection of the peer's disconnect, before which posts are lost."""
    until = time.monotonic() + PATIENCE
    while session.peers() and time.monotonic() < until:
        time.sleep(0.001)
    return not session.peers()


def _exchange(transfer: p2p.Transfer, memory: p2p.Memory, messages: Sequence[Exchange]) -> int:
    for each in messages:
        post = transfer.post_send if each.is_from_target else transfer.post_recv
        post(memory, each.offset, each.nbytes, tag=each.tag)
    transfer.wait(PATIENCE)
    return len(messages)


@functools.cache
def _processes() -> ForkServerContext:
    """Return a context that starts processes in milliseconds, from a preloaded fork server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


class Life:
    """One incarnation of the target, and the expected contents of its memory."""

    def __init__(self, session: p2p.Session, transports: str, seed: int) -> None:
        """Start the target, and wait until it listens."""
        self.pipe, there = _processes().Pipe()
        self.process = _processes().Process(
            target=_serve, args=(there, transports, seed, session.connection_info()), daemon=True
        )
        self.process.start()
        there.close()
        info, descriptor = self._answer()
        session.load(info)
        self.remote = session.import_memory(TARGET, descriptor)
        self.expected = _stamps(seed)
        self.notified = 0

    def received_notifications(self) -> int:
        """Return the number of notifications that the target received, after a wait for all."""
        if not self.notified:
            return 0
        self.pipe.send(("notifications", self.notified))
        return int(self._answer())

    def is_parted(self) -> bool:
        """Wait until the target has detected the disconnect of this session."""
        self.pipe.send(("part", None))
        return bool(self._answer())

    def request(self, messages: Sequence[Exchange]) -> None:
        """Request the target to post its side of the messages, and to wait for them."""
        self.pipe.send(("exchange", messages))

    def exchanged(self) -> int:
        """Return the number of requested messages that the target has sent and received."""
        return int(self._answer())

    def kill(self) -> None:
        """Kill the target, to simulate a crash."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _answer(self) -> Any:
        if not self.pipe.poll(2 * PATIENCE):
            raise TimeoutError(f"the other process does not answer in {2 * PATIENCE:g} s")
        return self.pipe.recv()

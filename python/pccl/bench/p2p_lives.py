# SPDX-License-Identifier: Apache-2.0
"""The far side of a soak: a process with a session, which is killed and started again."""

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
    """One with a tag, from and to the same offset of both memories."""

    tag: int
    offset: int
    nbytes: int
    is_from_target: bool


def _stamps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, MEMORY, dtype=np.uint8)


def _serve(pipe: Connection, transports: str, seed: int, soaker: bytes) -> None:
    """Register stamped memory, and do what is asked for."""
    with p2p.Session(TARGET, transports=transports) as session:
        near = session.load(soaker)
        memory = session.register(_stamps(seed))
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        while asked := pipe.recv():
            what, arguments = asked
            if what == "hear":
                pipe.send(_hear(session, arguments))
            elif what == "part":
                pipe.send(_is_parted(session))
            else:
                pipe.send(_exchange(session.transfer(near, window=64), memory, arguments))


def _hear(session: p2p.Session, wanted: int) -> int:
    """Return how many notifications have come."""
    heard = 0
    until = time.monotonic() + PATIENCE
    while heard < wanted and time.monotonic() < until:
        heard += len(session.notifications(timeout=1.0))
    return heard


def _is_parted(session: p2p.Session) -> bool:
    """Wait until it has noticed that its peer has disconnected: what it posts before is lost."""
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
    """Begin each life in milliseconds: as a child of a process that has loaded all, and no more."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


class Life:
    """One life of the far side, and what its memory must hold."""

    def __init__(self, session: p2p.Session, transports: str, seed: int) -> None:
        """Start it, and wait until it listens."""
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

    def heard(self) -> int:
        """Return how many notifications have come there, all of which it waits for."""
        if not self.notified:
            return 0
        self.pipe.send(("hear", self.notified))
        return int(self._answer())

    def is_parted(self) -> bool:
        """Wait until it has noticed that this session has disconnected."""
        self.pipe.send(("part", None))
        return bool(self._answer())

    def ask_for(self, messages: Sequence[Exchange]) -> None:
        """Have it post its sides of these, and wait for them."""
        self.pipe.send(("exchange", messages))

    def exchanged(self) -> int:
        """Return how many messages it has sent and received, of those that it was asked for."""
        return int(self._answer())

    def kill(self) -> None:
        """End it, as a crash would."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _answer(self) -> Any:
        if not self.pipe.poll(2 * PATIENCE):
            raise TimeoutError(f"the other process does not answer in {2 * PATIENCE:g} s")
        return self.pipe.recv()

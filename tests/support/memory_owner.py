# SPDX-License-Identifier: Apache-2.0
"""The owner of memory in tests of sessions over RDMA: a process that does what its test asks.

    python memory_owner.py PORT     serves one test, which connects as `Owner` does

The test calls methods of `Served` by name over a connection, and gets results and errors.
"""

from __future__ import annotations

import contextlib
import sys
import time
from multiprocessing.connection import Client, Listener
from typing import TYPE_CHECKING, Any

import numpy as np

from pccl import p2p

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY = b"of a test"
PATIENCE_S = 60.0
NAME = "owner"


def random_bytes(seed: int, nbytes: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


class Served:
    """What a test may ask of the owner; memories are known by the number of their seed."""

    def __init__(self) -> None:
        self.session = p2p.Session(NAME, transports="verbs", connect_timeout=PATIENCE_S)
        self.arrays: dict[int, NDArray[np.uint8]] = {}
        self.memories: dict[int, p2p.Memory] = {}

    def info(self) -> bytes:
        return self.session.connection_info()

    def load(self, info: bytes) -> None:
        self.session.load(info)

    def register(self, seed: int, nbytes: int) -> bytes:
        """Register random bytes and return the descriptor."""
        self.arrays[seed] = random_bytes(seed, nbytes)
        return self.register_again(seed)

    def register_again(self, seed: int) -> bytes:
        """Register the same addresses anew."""
        self.memories[seed] = self.session.register(self.arrays[seed])
        return self.memories[seed].descriptor().serialize()

    def deregister(self, seed: int) -> None:
        self.memories.pop(seed).deregister()

    def deregister_after(self, seed: int, seconds: float, value: int) -> bytes:
        """Deregister while the peer is busy, then fill; return the content between the two."""
        time.sleep(seconds)
        self.deregister(seed)
        left = self.arrays[seed].tobytes()
        self.arrays[seed][:] = value
        return left

    def content(self, seed: int) -> bytes:
        return self.arrays[seed].tobytes()

    def notification(self) -> tuple[str, bytes, dict[int, bytes]]:
        """Wait for one, and return it with the contents of that moment."""
        [(peer, payload)] = self.session.notifications(timeout=PATIENCE_S)
        return peer, payload, {seed: array.tobytes() for seed, array in self.arrays.items()}

    def send(self, peer: str, seed: int, offset: int, nbytes: int, tag: int) -> None:
        outgoing = self.session.transfer(peer, chunk=4096)
        outgoing.post_send(self.memories[seed], offset, nbytes, tag=tag)
        outgoing.wait(PATIENCE_S)


def serve(port: int) -> None:
    """Do what one test asks, until it disconnects."""
    with Listener(("", port), authkey=KEY) as listener, listener.accept() as asker:
        served = Served()
        with contextlib.suppress(EOFError), served.session:
            while True:
                name, arguments = asker.recv()
                try:
                    reply = getattr(served, name)(*arguments)
                except Exception as error:
                    reply = error
                asker.send(reply)


class Owner:
    """The test's end: ``owner.ask("content", 1)``."""

    def __init__(self, host: str, port: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._connection = Client((host, port), authkey=KEY)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def begin(self, name: str, *arguments: Any) -> None:
        self._connection.send((name, arguments))

    def finish(self) -> Any:
        if not self._connection.poll(PATIENCE_S):
            raise TimeoutError("the owner has not answered")
        reply = self._connection.recv()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ask(self, name: str, *arguments: Any) -> Any:
        self.begin(name, *arguments)
        return self.finish()

    def close(self) -> None:
        self._connection.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]))

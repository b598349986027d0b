# SPDX-License-Identifier: Apache-2.0
"""Sweep over message sizes and numbers of messages in flight for one transfer."""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from pccl import p2p
from pccl.bench.p2p import PATIENCE, Bench, Row, median_of, start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["measure"]

_FEWEST_ROUNDS = 3
_MOST_ROUNDS = 1000


class _Side:
    """One side, which moves a whole memory as messages in the order of their offsets."""

    def __init__(self, name: str, transports: str, sockets: int, nbytes: int) -> None:
        self.session = p2p.Session(name, transports=transports, tcp_sockets=sockets)
        self.memory = self.session.allocate(nbytes)

    def receive(self, transfer: p2p.Transfer, chunk: int) -> None:
        for offset in range(0, self.memory.nbytes, chunk):
            nbytes = min(chunk, self.memory.nbytes - offset)
            transfer.post_recv(self.memory, offset, nbytes, timeout=PATIENCE)
        transfer.wait(PATIENCE)

    def send(self, transfer: p2p.Transfer, chunk: int) -> float:
        begin = time.perf_counter()
        for offset in range(0, self.memory.nbytes, chunk):
            nbytes = min(chunk, self.memory.nbytes - offset)
            transfer.post_send(self.memory, offset, nbytes, timeout=PATIENCE)
        transfer.wait(PATIENCE)
        return time.perf_counter() - begin


def _receive(pipe: Connection, transports: str, sockets: int, nbytes: int) -> None:
    """Run the receiver: take part in the requested rounds until the request is empty."""
    side = _Side("receiver", transports, sockets, nbytes)
    with side.session:
        pipe.send(side.session.connection_info())
        side.session.load(pipe.recv())
        while reported := pipe.recv():
            chunk, window, rounds = reported
            transfer = side.session.transfer("sender", window=window)
            for _ in range(rounds):
                side.receive(transfer, chunk)
            pipe.send(bool((side.memory.array() == 1).all()))


def _send(side: _Side, pipe: Connection, chunk: int, window: int, rounds: int) -> list[float]:
    """Return the time of each round; the other process checks the received bytes."""
    pipe.send((chunk, window, rounds))
    transfer = side.session.transfer("receiver", window=window)
    times = [side.send(transfer, chunk) for _ in range(rounds)]
    if not pipe.recv():
        raise RuntimeError("the received messages differ from those sent")
    return times


def _sweep(bench: Bench, transports: str, sockets: int, nbytes: int) -> list[Row]:
    process, pipe = start(_receive, transports, sockets, nbytes)
    side = _Side("sender", transports, sockets, nbytes)
    side.memory.array()[:] = 1
    copied = np.zeros(nbytes, np.uint8)
    copy = median_of(lambda: np.copyto(copied, side.memory.array()), bench.seconds)
    path = f"{transports}, {sockets or 'usual'} sockets" if transports == "tcp" else transports
    rows = []
    with side.session:
        side.session.load(pipe.recv())
        pipe.send(side.session.connection_info())
        for chunk in bench.chunks:
            for window in bench.windows:
                first = _send(side, pipe, chunk, window, 1)[0]
                rounds = min(_MOST_ROUNDS, max(_FEWEST_ROUNDS, math.ceil(bench.seconds / first)))
                seconds = statistics.median(_send(side, pipe, chunk, window, rounds))
                case = f"chunk {chunk}, window {window}"
                rows.append(Row(path, case, nbytes, seconds, "memcpy", copy, "send"))
        pipe.send(None)
        process.join()
    return rows


def measure(bench: Bench) -> list[Row]:
    """Measure transfers of the largest size for each chunk, window and transport."""
    nbytes = max(bench.sizes)
    return [row for way in bench.ways() for row in _sweep(bench, *way, nbytes)]

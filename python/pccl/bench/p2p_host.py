# SPDX-License-Identifier: Apache-2.0
"""Benchmark of p2p transfers between sessions of this host, beside memcpy and plain sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pccl import p2p
from pccl.bench import p2p_peers
from pccl.bench.p2p import Bench, Row, median_of, median_of_posts, start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

__all__ = ["measure"]

_SMALL = (8, 1024)  # bytes; their time is a latency


def _serve(pipe: Connection, transports: str, sockets: int, nbytes: int) -> None:
    """Run the target: register memory, send its descriptors, and make no further call."""
    with p2p.Session("target", transports=transports, tcp_sockets=sockets) as session:
        memories = [session.allocate(nbytes), session.register(np.ones(nbytes, np.uint8))]
        memories[0].array()[:] = 1
        descriptors = [memory.descriptor().serialize() for memory in memories]
        pipe.send((session.connection_info(), descriptors))
        pipe.recv()


def _order(count: int) -> NDArray[np.int64]:
    """Return a random order of blocks, in which almost no blocks are adjacent."""
    return np.random.default_rng(1).permutation(count)


def _copied(
    into: NDArray[np.uint8], source: NDArray[np.uint8], count: int, size: int, seconds: float
) -> tuple[str, float]:
    """Return the name and time of a memcpy of ``count`` blocks in random order in ``source``."""
    here, there = (each[: count * size].reshape(count, size) for each in (into, source))
    order = _order(count)

    def copy() -> None:
        if count == 1:
            np.copyto(here, there)
        else:
            np.take(there, order, axis=0, out=here, mode="clip")

    return "memcpy" if count == 1 else "memcpy of each block", median_of(copy, seconds)


class _Sides:
    """Initiator of one transport, and the two memories of the target."""

    def __init__(self, bench: Bench, transports: str, sockets: int, nbytes: int) -> None:
        self.bench = bench
        self.over_tcp = transports == "tcp"
        self.sockets = sockets
        self.process, self.pipe = start(_serve, transports, sockets, nbytes)
        self.session = p2p.Session("initiator", transports=transports, tcp_sockets=sockets)
        info, descriptors = self.pipe.recv()
        self.session.load(info)
        # Over TCP, both kinds of memory take the same path.
        reached = descriptors[:1] if self.over_tcp else descriptors
        self.remotes = [self.session.import_memory("target", each) for each in reached]
        self.local = self.session.allocate(nbytes)
        self.local.array()[:] = 2
        self.source = np.ones(nbytes, np.uint8)  # source of the memcpy

    def median(self, op: str, remote: p2p.RemoteMemory, count: int, size: int) -> tuple[float, str]:
        """Return the median time and the path, with blocks in order here and shuffled there."""
        here = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
        plan = self.session.prepare(self.local, here, remote, here[_order(count)])
        seconds, path = median_of_posts(self.session, plan, self.bench.seconds, op)
        if self.sockets:
            path = f"tcp, {self.sockets} socket{'s' * (self.sockets > 1)}"
        return seconds, path

    def peer(self, count: int, size: int) -> tuple[str, float]:
        """Return the name and time of a method that moves as many bytes without sessions."""
        seconds = self.bench.seconds
        if count == 1 and size in _SMALL:
            return "socket round trip", p2p_peers.round_trip(size, seconds)
        if not self.over_tcp:
            return _copied(self.local.array(), self.source, count, size, seconds)
        stream = p2p_peers.stream(seconds)
        return stream.name, count * size / stream.bytes_per_second

    def rows(self, remote: p2p.RemoteMemory, case: str, count: int, size: int) -> list[Row]:
        """Time one case: reads, then the compared method, then writes, as speed may drift."""
        read, path = self.median("read", remote, count, size)
        peer, peer_seconds = self.peer(count, size)
        write, _ = self.median("write", remote, count, size)
        return [
            Row(path, case, count * size, seconds, peer, peer_seconds, op, count)
            for op, seconds in (("read", read), ("write", write))
        ]

    def close(self) -> None:
        self.session.close()
        self.pipe.send(None)
        self.process.join()


def _cases(bench: Bench, nbytes: int) -> list[tuple[str, int, int]]:
    """Return (name, number of blocks, bytes per block) of the cases that fit into ``nbytes``."""
    cases = [("latency", 1, size) for size in _SMALL]
    for batch in bench.batches:
        name = "bandwidth" if batch == 1 else f"{batch} blocks"
        cases += [(name, batch, size) for size in bench.sizes if batch * size <= nbytes]
    return [*cases, (f"{bench.blocks} blocks", bench.blocks, bench.block_bytes)]


def measure(bench: Bench) -> list[Row]:
    """Run all cases; the target process makes no call meanwhile."""
    nbytes = max(*bench.sizes, bench.blocks * bench.block_bytes)
    rows: list[Row] = []
    for transports, sockets in bench.ways():
        sides = _Sides(bench, transports, sockets, nbytes)
        for remote in sides.remotes:
            for case in _cases(bench, nbytes):
                rows += sides.rows(remote, *case)
        sides.close()
    return rows

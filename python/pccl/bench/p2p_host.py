"""Transfers between two sessions of this host, beside a memcpy and bare sockets."""

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

_SMALL = (8, 1024)  # bytes, whose time is a latency
_OPS = ("read", "write")


def _serve(pipe: Connection, transports: str, sockets: int, nbytes: int) -> None:
    """Register memory, tell of it, and make no further call: the far side."""
    with p2p.Session("target", transports=transports, tcp_sockets=sockets) as session:
        memories = [session.allocate(nbytes), session.register(np.ones(nbytes, np.uint8))]
        memories[0].array()[:] = 1
        descriptors = [memory.descriptor().serialize() for memory in memories]
        pipe.send((session.connection_info(), descriptors))
        pipe.recv()


def _order(count: int) -> NDArray[np.int64]:
    """Return the order in which blocks are fetched: one by chance, which joins next to none."""
    return np.random.default_rng(1).permutation(count)


class _Peers:
    """Times of what moves as many bytes without sessions, each measured once."""

    def __init__(self, bench: Bench) -> None:
        self._seconds = bench.seconds
        self._trips = {size: p2p_peers.round_trip(size, bench.seconds) for size in _SMALL}
        self._copies: dict[tuple[int, int], float] = {}
        self._stream: p2p_peers.Stream | None = None

    def latency(self, size: int) -> tuple[str, float]:
        return "socket round trip", self._trips[size]

    def streamed(self, nbytes: int) -> tuple[str, float]:
        if self._stream is None:
            self._stream = p2p_peers.stream(self._seconds)
        return self._stream.name, nbytes / self._stream.bytes_per_second

    def copied(
        self, into: NDArray[np.uint8], source: NDArray[np.uint8], count: int, size: int
    ) -> tuple[str, float]:
        here, there = (each[: count * size].reshape(count, size) for each in (into, source))
        order = _order(count)

        def copy() -> None:
            if count == 1:
                np.copyto(here, there)
            else:
                np.take(there, order, axis=0, out=here, mode="clip")

        if (count, size) not in self._copies:
            self._copies[count, size] = median_of(copy, self._seconds)
        return "memcpy" if count == 1 else "memcpy of each block", self._copies[count, size]


class _Sides:
    """One transport: this side, and the far one's two memories."""

    def __init__(self, bench: Bench, transports: str, sockets: int, nbytes: int) -> None:
        self.bench = bench
        self.over_tcp = transports == "tcp"
        self.sockets = sockets
        self.process, self.pipe = start(_serve, transports, sockets, nbytes)
        self.session = p2p.Session("initiator", transports=transports, tcp_sockets=sockets)
        info, descriptors = self.pipe.recv()
        self.session.load(info)
        # What only the owner's help reaches is all the same over TCP.
        reached = descriptors[:1] if self.over_tcp else descriptors
        self.remotes = [self.session.import_memory("target", each) for each in reached]
        self.local = self.session.allocate(nbytes)
        self.local.array()[:] = 2
        self.source = np.ones(nbytes, np.uint8)  # what a memcpy reads

    def median(self, op: str, remote: p2p.RemoteMemory, count: int, size: int) -> tuple[float, str]:
        """Blocks that lie one after another here, in a random order of another order there."""
        here = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
        plan = self.session.prepare(self.local, here, remote, here[_order(count)])
        seconds, path = median_of_posts(self.session, plan, self.bench.seconds, op)
        if self.sockets:
            path = f"tcp, {self.sockets} socket{'s' * (self.sockets > 1)}"
        return seconds, path

    def peer(self, peers: _Peers, count: int, size: int) -> tuple[str, float]:
        if count == 1 and size in _SMALL:
            return peers.latency(size)
        if self.over_tcp:
            return peers.streamed(count * size)
        return peers.copied(self.local.array(), self.source, count, size)

    def close(self) -> None:
        self.session.close()
        self.pipe.send(None)
        self.process.join()


def _cases(bench: Bench, nbytes: int) -> list[tuple[str, int, int]]:
    """Return name, number of blocks and bytes of each, of what fits into ``nbytes``."""
    cases = [("latency", 1, size) for size in _SMALL]
    for batch in bench.batches:
        name = "bandwidth" if batch == 1 else f"{batch} blocks"
        cases += [(name, batch, size) for size in bench.sizes if batch * size <= nbytes]
    return [*cases, (f"{bench.blocks} blocks", bench.blocks, bench.block_bytes)]


def measure(bench: Bench) -> list[Row]:
    """Run all cases; the far process makes no call while they run."""
    nbytes = max(*bench.sizes, bench.blocks * bench.block_bytes)
    peers = _Peers(bench)
    rows = []
    for transports, sockets in bench.ways():
        sides = _Sides(bench, transports, sockets, nbytes)
        for remote in sides.remotes:
            for case, count, size in _cases(bench, nbytes):
                for op in _OPS:
                    seconds, path = sides.median(op, remote, count, size)
                    peer, peer_seconds = sides.peer(peers, count, size)
                    moved = count * size
                    rows.append(Row(path, case, moved, seconds, peer, peer_seconds, op, count))
        sides.close()
    return rows

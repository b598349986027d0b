"""Transfers between two sessions of this machine, beside a memcpy and a bare socket."""

from __future__ import annotations

import math
import multiprocessing
import socket
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pccl import p2p

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

__all__ = ["PATIENCE", "Bench", "Row", "measure", "median_of", "median_of_reads", "start"]

PATIENCE = 60.0  # seconds, for the other process


@dataclass(frozen=True)
class Bench:
    """What to measure."""

    transports: tuple[str, ...]
    sizes: tuple[int, ...]  # bytes of a transfer
    blocks: int  # of the case of many
    block_bytes: int
    seconds: float  # of each case, about
    sockets: tuple[int, ...] = (0,)  # of TCP, one after the other; 0 for the usual number
    chunks: tuple[int, ...] = ()  # bytes of a message, of the sweep; none: there is none
    windows: tuple[int, ...] = (16,)  # messages under way

    def ways(self) -> list[tuple[str, int]]:
        """Transports, each with a number of sockets."""
        return [
            (transports, sockets)
            for transports in self.transports
            for sockets in (self.sockets if transports == "tcp" else (0,))
        ]


@dataclass(frozen=True)
class Row:
    """One case: medians, and how many times its peer's time that is."""

    path: str
    case: str
    nbytes: int
    seconds: float
    peer: str
    peer_seconds: float

    @property
    def gigabytes(self) -> float:
        """10^9 bytes a second."""
        return self.nbytes / self.seconds / 1e9

    @property
    def ratio(self) -> float:
        """Time over the peer's: below 1 is faster."""
        return self.seconds / self.peer_seconds

    def values(self) -> dict[str, Any]:
        """Return what goes into JSON."""
        return asdict(self) | {"gigabytes": self.gigabytes, "ratio": self.ratio}


def _serve(pipe: Connection, transports: str, sockets: int, nbytes: int) -> None:
    """Register memory, tell of it, and make no further call: the far side."""
    with p2p.Session("target", transports=transports, tcp_sockets=sockets) as session:
        memories = [session.allocate(nbytes), session.register(np.ones(nbytes, np.uint8))]
        memories[0].array()[:] = 1
        descriptors = [memory.descriptor().serialize() for memory in memories]
        pipe.send((session.connection_info(), descriptors))
        pipe.recv()


def _echo(pipe: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname())
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while word := connection.recv(1 << 16):
                connection.sendall(word)


def start(
    target: Callable[..., None], *args: object, patience: float = PATIENCE
) -> tuple[Any, Connection]:
    """Run ``target`` in a process, and wait for what it says first."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *args), daemon=True)
    process.start()
    there.close()
    if not here.poll(patience):
        process.kill()
        raise TimeoutError(f"the other process of the bench did not start in {patience:g} s")
    return process, here


def _rounds(seconds: float, once: float) -> int:
    return min(20_000, max(5, math.ceil(seconds / max(once, 1e-9))))


def median_of(work: Callable[[], object], seconds: float) -> float:
    """Return the median time of ``work``, of as many rounds as fit."""

    def once() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    first = min(once(), once())
    return statistics.median(once() for _ in range(_rounds(seconds, first)))


def median_of_reads(session: p2p.Session, plan: p2p.Plan, seconds: float) -> tuple[float, str]:
    """Return the median time of ``plan``, of as many rounds as fit, and by which path it went."""
    work = session.post_read(plan)
    work.wait(PATIENCE)
    core = session._core
    first = min(core.time_posts(False, plan._core, 2))
    times = core.time_posts(False, plan._core, _rounds(seconds, first))
    return statistics.median(times), work.stats().path


def _socket_round_trip(nbytes: int, seconds: float) -> float:
    """Of ``nbytes`` to a process that sends them back, over TCP of this host."""
    process, pipe = start(_echo)
    word = b"x" * nbytes
    with socket.create_connection(pipe.recv()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def round_trip() -> None:
            connection.sendall(word)
            left = nbytes
            while left:
                left -= len(connection.recv(left))

        median = median_of(round_trip, seconds)
    process.join()
    return median


class _Sides:
    """One transport: this side, and the far one's two memories."""

    def __init__(self, bench: Bench, transports: str, sockets: int, nbytes: int) -> None:
        self.bench = bench
        self.sockets = sockets
        self.process, self.pipe = start(_serve, transports, sockets, nbytes)
        self.session = p2p.Session("initiator", transports=transports, tcp_sockets=sockets)
        info, descriptors = self.pipe.recv()
        self.session.load(info)
        self.remotes = [self.session.import_memory("target", each) for each in descriptors]
        self.local = self.session.allocate(nbytes)
        self.local.array()[:] = 2
        self.copied = np.ones(nbytes, np.uint8)  # what a memcpy reads

    def median(self, plan: p2p.Plan) -> tuple[float, str]:
        seconds, path = median_of_reads(self.session, plan, self.bench.seconds)
        if self.sockets:
            path = f"tcp, {self.sockets} socket{'s' * (self.sockets > 1)}"
        return seconds, path

    def close(self) -> None:
        self.session.close()
        self.pipe.send(None)
        self.process.join()


def _latency(sides: _Sides, remote: p2p.RemoteMemory, nbytes: int, peer_seconds: float) -> Row:
    seconds, path = sides.median(
        sides.session.prepare(sides.local, (0, nbytes, 0, 1), remote, (0, nbytes, 0, 1))
    )
    return Row(path, "latency", nbytes, seconds, "socket round trip", peer_seconds)


def _bandwidth(sides: _Sides, remote: p2p.RemoteMemory, nbytes: int) -> Row:
    one = (0, nbytes, 0, 1)
    seconds, path = sides.median(sides.session.prepare(sides.local, one, remote, one))
    here, there = sides.local.array()[:nbytes], sides.copied[:nbytes]
    copy = median_of(lambda: np.copyto(here, there), sides.bench.seconds)
    return Row(path, "bandwidth", nbytes, seconds, "memcpy", copy)


def _many(sides: _Sides, remote: p2p.RemoteMemory) -> Row:
    """Blocks that lie one after another there, in a random order of another order here."""
    bench = sides.bench
    count, size = bench.blocks, bench.block_bytes
    order = np.random.default_rng(1).permutation(count)
    here = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
    there = here[order]
    seconds, path = sides.median(sides.session.prepare(sides.local, here, remote, there))
    into = sides.local.array()[: count * size].reshape(count, size)
    rows = sides.copied[: count * size].reshape(count, size)
    loop = median_of(lambda: np.take(rows, order, axis=0, out=into, mode="clip"), bench.seconds)
    return Row(path, f"{count} blocks", count * size, seconds, "memcpy of each block", loop)


def measure(bench: Bench) -> list[Row]:
    """Run all cases; the far process makes no call while they run."""
    nbytes = max(*bench.sizes, bench.blocks * bench.block_bytes)
    small = [8, 1024]
    trips = [_socket_round_trip(size, bench.seconds) for size in small]
    rows = []
    for transports, sockets in bench.ways():
        sides = _Sides(bench, transports, sockets, nbytes)
        # What only the owner's help reaches is all the same over TCP.
        remotes = sides.remotes if transports == "shm" else sides.remotes[:1]
        for remote in remotes:
            pairs = zip(small, trips, strict=True)
            rows += [_latency(sides, remote, size, trip) for size, trip in pairs]
            rows += [_bandwidth(sides, remote, size) for size in bench.sizes]
            rows.append(_many(sides, remote))
        sides.close()
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Common parts of p2p benchmarks: parameters, rows, the peer process, and medians."""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pccl._internal import own_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from pccl import p2p

__all__ = ["PATIENCE", "Bench", "Row", "median_of", "median_of_posts", "rounds_in", "start"]

PATIENCE = 60.0  # seconds, for the other process


@dataclass(frozen=True)
class Bench:
    """Parameters of a p2p benchmark."""

    transports: tuple[str, ...]
    sizes: tuple[int, ...]  # bytes per transfer
    blocks: int  # number in the case of many blocks
    block_bytes: int
    seconds: float  # per case, approximately
    sockets: tuple[int, ...] = (0,)  # numbers of TCP sockets to measure; 0: default number
    chunks: tuple[int, ...] = ()  # bytes per message in the sweep; empty: no sweep
    windows: tuple[int, ...] = (16,)  # messages in flight
    batches: tuple[int, ...] = (1,)  # numbers of blocks per transfer, for each size

    def ways(self) -> list[tuple[str, int]]:
        """Return the pairs of transports and number of sockets."""
        return [
            (transports, sockets)
            for transports in self.transports
            for sockets in (self.sockets if transports == "tcp" else (0,))
        ]


@dataclass(frozen=True)
class Row:
    """Result of one case: its median time, and that of the method it is compared with."""

    path: str
    case: str
    nbytes: int
    seconds: float
    peer: str
    peer_seconds: float
    op: str = "read"
    blocks: int = 1

    @property
    def gigabytes(self) -> float:
        """Bandwidth in GB/s (10^9 bytes per second)."""
        return self.nbytes / self.seconds / 1e9

    @property
    def ratio(self) -> float:
        """Time relative to the compared method: below 1 is faster."""
        return self.seconds / self.peer_seconds

    def values(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self) | {"gigabytes": self.gigabytes, "ratio": self.ratio}


def start(
    target: Callable[..., None], *args: object, patience: float = PATIENCE
) -> tuple[Any, Connection]:
    """Run ``target`` in a process, and wait for its first message."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *args), daemon=True)
    own_path.start(process)
    there.close()
    if not here.poll(patience):
        process.kill()
        raise TimeoutError(f"the other process of the bench did not start in {patience:g} s")
    return process, here


def rounds_in(seconds: float, once: float) -> int:
    """Return the number of rounds of ``once`` seconds in ``seconds``: 5 to 20,000."""
    return min(20_000, max(5, math.ceil(seconds / max(once, 1e-9))))


def median_of(work: Callable[[], object], seconds: float) -> float:
    """Return the median time of ``work`` in seconds, over the rounds that fit in ``seconds``."""

    def once() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    first = min(once(), once())
    return statistics.median(once() for _ in range(rounds_in(seconds, first)))


def median_of_posts(
    session: p2p.Session, plan: p2p.Plan, seconds: float, op: str = "read"
) -> tuple[float, str]:
    """Return the median time of ``plan`` in seconds, and its path."""
    writes = op == "write"
    work = session.post_write(plan) if writes else session.post_read(plan)
    work.wait(PATIENCE)
    core = session._core
    first = min(core.time_posts(writes, plan._core, 2))
    times = core.time_posts(writes, plan._core, rounds_in(seconds, first))
    return statistics.median(times), work.stats().path

# SPDX-License-Identifier: Apache-2.0
"""What benches of sessions have in common: what to measure, rows, the other process, medians."""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pccl import own_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from pccl import p2p

__all__ = ["PATIENCE", "Bench", "Row", "median_of", "median_of_posts", "rounds_in", "start"]

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
    batches: tuple[int, ...] = (1,)  # blocks of each size in one transfer

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
    op: str = "read"
    blocks: int = 1

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


def start(
    target: Callable[..., None], *args: object, patience: float = PATIENCE
) -> tuple[Any, Connection]:
    """Run ``target`` in a process, and wait for what it says first."""
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
    """Return how often to measure what takes ``once`` seconds: 5 to 20,000 times."""
    return min(20_000, max(5, math.ceil(seconds / max(once, 1e-9))))


def median_of(work: Callable[[], object], seconds: float) -> float:
    """Return the median time of ``work``, of as many rounds as fit."""

    def once() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    first = min(once(), once())
    return statistics.median(once() for _ in range(rounds_in(seconds, first)))


def median_of_posts(
    session: p2p.Session, plan: p2p.Plan, seconds: float, op: str = "read"
) -> tuple[float, str]:
    """Return the median time of ``plan``, of as many rounds as fit, and by which path it went."""
    writes = op == "write"
    work = session.post_write(plan) if writes else session.post_read(plan)
    work.wait(PATIENCE)
    core = session._core
    first = min(core.time_posts(writes, plan._core, 2))
    times = core.time_posts(writes, plan._core, rounds_in(seconds, first))
    return statistics.median(times), work.stats().path

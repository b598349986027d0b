"""A session that reads and writes another one's memory, which is killed and comes back."""

from __future__ import annotations

import functools
import multiprocessing
import resource
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pccl import p2p
from pccl.bench import holdings, p2p_whole
from pccl.errors import Error

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

__all__ = ["Soak", "Soaker", "Tally", "soak"]

_PATIENCE = 60.0  # seconds, for the other process and for a transfer
_MEMORY = 8 << 20
_MOST_BLOCKS = 200


@dataclass(frozen=True)
class Soak:
    """What to do, and until when: for so long, or until so many processes were killed."""

    transports: str
    seed: int
    seconds: float
    kills: int = 0  # instead of seconds; one step in three is one
    whole: int = 0  # bytes of one read and one write before; 0: none


@dataclass
class Tally:
    """What was done, and what was wrong."""

    reads: int = 0
    writes: int = 0
    nbytes: int = 0
    kills: int = 0
    disconnects: int = 0
    notifications: int = 0
    wrong: int = 0  # transfers that were done with other bytes than these
    grown: int = 0  # bytes of this process's memory since the first kill
    left: list[str] = field(
        default_factory=list
    )  # of descriptors, threads and mappings, since then

    def values(self) -> dict[str, Any]:
        """Return what goes into JSON."""
        return asdict(self)


def _serve(pipe: Connection, transports: str, seed: int) -> None:
    """Register stamped memory, and tell how many notifications have come when asked."""
    with p2p.Session("target", transports=transports) as session:
        memory = session.register(_stamps(seed))
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        while wanted := pipe.recv():
            heard = 0
            until = time.monotonic() + _PATIENCE
            while heard < wanted and time.monotonic() < until:
                heard += len(session.notifications(timeout=1.0))
            pipe.send(heard)


def _stamps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, _MEMORY, dtype=np.uint8)


@functools.cache
def _processes() -> ForkServerContext:
    """Begin each life in milliseconds: as a child of a process that has loaded all, and no more."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


class _Life:
    """One life of the far side, and what its memory must hold."""

    def __init__(self, plan: Soak, session: p2p.Session, number: int) -> None:
        seed = plan.seed * 1000 + number
        self.pipe, there = _processes().Pipe()
        self.process = _processes().Process(
            target=_serve, args=(there, plan.transports, seed), daemon=True
        )
        self.process.start()
        there.close()
        if not self.pipe.poll(_PATIENCE):
            raise TimeoutError(f"the other process did not start in {_PATIENCE:g} s")
        info, descriptor = self.pipe.recv()
        session.load(info)
        self.remote = session.import_memory("target", descriptor)
        self.expected = _stamps(seed)
        self.notified = 0

    def heard(self) -> int:
        """Return how many notifications have come there, all of which it waits for."""
        if not self.notified:
            return 0
        self.pipe.send(self.notified)
        if not self.pipe.poll(2 * _PATIENCE):
            raise TimeoutError("the other process does not answer")
        return int(self.pipe.recv())

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Soaker:
    """Does what chance says on this side, and compares with what must be there."""

    def __init__(self, plan: Soak) -> None:
        self.plan = plan
        self.kill_chance = 1 / 3 if plan.kills else 0.01
        self.random = np.random.default_rng(plan.seed)
        self.session = p2p.Session("soaker", transports=plan.transports)
        self.mine = np.zeros(_MEMORY, np.uint8)
        self.local = self.session.register(self.mine)
        self.tally = Tally()
        self.lives = 0
        self.life = self.next_life()

    def next_life(self) -> _Life:
        """Start the far side again."""
        self.lives += 1
        return _Life(self.plan, self.session, self.lives)

    def blocks(self) -> np.ndarray:
        """Rows of offset and length that do not overlap, some of which touch."""
        count = int(self.random.integers(1, _MOST_BLOCKS))
        width = _MEMORY // count
        lengths = self.random.integers(0, width + 1, count)
        lengths[self.random.random(count) < 0.2] = width
        return np.stack([np.arange(count) * width, lengths], axis=1)

    def transfer(self) -> None:
        """Read or write some blocks, and compare these."""
        rows = self.blocks()
        chosen = [slice(offset, offset + length) for offset, length in rows.tolist()]
        plan = self.session.prepare(self.local, rows, self.life.remote, rows)
        notify = b"x" if self.random.random() < 0.5 else b""
        if self.random.random() < 0.5:
            for each in chosen:
                self.mine[each] = 0
            self.session.post_read(plan, notify=notify).wait(_PATIENCE)
            self.tally.reads += 1
        else:
            for each in chosen:
                self.mine[each] = self.random.integers(0, 256)
            self.session.post_write(plan, notify=notify).wait(_PATIENCE)
            for each in chosen:
                self.life.expected[each] = self.mine[each]
            self.tally.writes += 1
        self.life.notified += len(notify)
        self.tally.nbytes += int(rows[:, 1].sum())
        same = all(np.array_equal(self.mine[each], self.life.expected[each]) for each in chosen)
        self.tally.wrong += not same

    def read_all(self) -> None:
        """Compare all of the far side's memory."""
        self.mine[:] = 0
        self.session.read(self.local[:], self.life.remote[:]).wait(_PATIENCE)
        self.tally.wrong += not np.array_equal(self.mine, self.life.expected)

    def kill(self) -> None:
        """In the middle of a transfer, which must not be done with bytes that are not there."""
        self.settle()
        work = self.session.read(self.local[:], self.life.remote[:])
        self.life.kill()
        try:
            work.wait(_PATIENCE)
            self.tally.wrong += not np.array_equal(self.mine, self.life.expected)
        except Error:
            pass
        self.tally.kills += 1
        self.life = self.next_life()

    def settle(self) -> None:
        """Compare all that is there, and what was heard there."""
        self.read_all()
        heard = self.life.heard()
        self.tally.wrong += heard != self.life.notified
        self.tally.notifications += heard
        self.life.notified = 0

    def step(self) -> None:
        """Do the next thing."""
        chance = self.random.random()
        if chance < self.kill_chance:
            self.kill()
        elif chance < self.kill_chance + 0.04:
            self.session.disconnect("target")
            self.tally.disconnects += 1
        else:
            self.transfer()


def _resident() -> int:
    """Return the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def soak(plan: Soak) -> Tally:
    """Go on for so many seconds; a seed does the same each time, but for how far it comes."""
    soaker = Soaker(plan)
    if plan.whole:
        soaker.tally.wrong += p2p_whole.wrong_parts_of(plan.transports, plan.whole)
        soaker.tally.nbytes += 2 * plan.whole
    with soaker.session:
        soaker.kill()
        soaker.settle()  # connects
        warm, held = _resident(), holdings.at_rest()
        until = time.monotonic() + plan.seconds
        while soaker.tally.kills < plan.kills if plan.kills else time.monotonic() < until:
            soaker.step()
        soaker.settle()
        soaker.tally.grown = _resident() - warm
        soaker.tally.left = holdings.left_since(held)
        soaker.life.kill()
    return soaker.tally

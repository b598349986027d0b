# SPDX-License-Identifier: Apache-2.0
"""A session that exchanges bytes with another one, which is killed and comes back."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pccl import p2p
from pccl.bench import holdings, p2p_whole
from pccl.bench.p2p_lives import MEMORY, PATIENCE, TARGET, Exchange, Life
from pccl.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Soak", "Soaker", "Tally", "soak"]

_MOST_BLOCKS = 200
_MOST_MESSAGES = 16
_WARM = 10.0  # seconds, in which this process comes to have what it goes on with
_MOST_GROWN = 32 << 20  # bytes, afterwards: four times the memory of a life, which comes and goes


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
    messages: int = 0
    wrong: int = 0  # transfers that were done with other bytes than these
    grown: int = 0  # bytes of this process's memory, beyond its most in the first 10 s
    left: list[str] = field(
        default_factory=list
    )  # of descriptors, threads and mappings, since then

    def values(self) -> dict[str, Any]:
        """Return what goes into JSON."""
        return asdict(self)

    def has_failed(self) -> bool:
        """Tell whether anything was wrong, left behind, or grew."""
        return bool(self.wrong or self.left or self.grown > _MOST_GROWN)


class Soaker:
    """Does what chance says on this side, and compares with what must be there."""

    def __init__(self, plan: Soak) -> None:
        self.plan = plan
        self.kill_chance = 1 / 3 if plan.kills else 0.01
        self.random = np.random.default_rng(plan.seed)
        self.session = p2p.Session("soaker", transports=plan.transports)
        self.mine = np.zeros(MEMORY, np.uint8)
        self.local = self.session.register(self.mine)
        self.tally = Tally()
        self.lives = 0
        self.life = self.next_life()

    def next_life(self) -> Life:
        """Start the far side again."""
        self.lives += 1
        seed = self.plan.seed * 1000 + self.lives
        return Life(self.session, self.plan.transports, seed)

    def blocks(self) -> np.ndarray:
        """Rows of offset and length that do not overlap, some of which touch."""
        count = int(self.random.integers(1, _MOST_BLOCKS))
        width = MEMORY // count
        lengths = self.random.integers(0, width + 1, count)
        lengths[self.random.random(count) < 0.2] = width
        return np.stack([np.arange(count) * width, lengths], axis=1)

    def transfer(self) -> None:
        """Read or write some blocks, and compare these."""
        rows = self.blocks()
        reads = self.random.random() < 0.5
        notify = b"x" if self.random.random() < 0.5 else b""
        self.post(rows, reads=reads, notify=notify).wait(PATIENCE)
        if reads:
            self.tally.reads += 1
        else:
            for each in _slices(rows):
                self.life.expected[each] = self.mine[each]
            self.tally.writes += 1
        self.life.notified += len(notify)
        self.tally.nbytes += int(rows[:, 1].sum())
        self.compare(rows)

    def post(self, rows: np.ndarray, *, reads: bool, notify: bytes = b"") -> p2p.Work:
        """Begin to read blocks, or to write new bytes into them."""
        for each in _slices(rows):
            self.mine[each] = 0 if reads else self.random.integers(0, 256)
        plan = self.session.prepare(self.local, rows, self.life.remote, rows)
        post = self.session.post_read if reads else self.session.post_write
        return post(plan, notify=notify)

    def compare(self, rows: np.ndarray) -> None:
        """Count it as wrong unless these blocks are what the far side's are."""
        same = all(
            np.array_equal(self.mine[each], self.life.expected[each]) for each in _slices(rows)
        )
        self.tally.wrong += not same

    def messages(self) -> None:
        """Exchange messages with tags, and compare those that have come."""
        self.life.ask_for(messages := self.some_messages())
        for posted in self.post_messages(messages):
            posted.wait(PATIENCE)
        self.tally.wrong += self.life.exchanged() != len(messages)
        for each in messages:
            block = slice(each.offset, each.offset + each.nbytes)
            if not each.is_from_target:
                self.life.expected[block] = self.mine[block]
        self.compare(np.array([(each.offset, each.nbytes) for each in messages]))
        self.tally.messages += len(messages)
        self.tally.nbytes += sum(each.nbytes for each in messages)

    def some_messages(self) -> list[Exchange]:
        """Return some of both directions, in any order, with tags and bytes of their own."""
        rows = self.random.permutation(self.blocks())[:_MOST_MESSAGES].tolist()
        tags = self.random.choice(2**32, len(rows), replace=False).tolist()
        comes = (self.random.random(len(rows)) < 0.5).tolist()
        return [
            Exchange(tag, offset, nbytes, each)
            for tag, (offset, nbytes), each in zip(tags, rows, comes, strict=True)
        ]

    def post_messages(self, messages: Sequence[Exchange]) -> list[p2p.Message]:
        """Post this side's, in another order than the far side does."""
        transfer = self.session.transfer(TARGET, window=_MOST_MESSAGES)
        posted = []
        for number in self.random.permutation(len(messages)).tolist():
            each = messages[number]
            block = slice(each.offset, each.offset + each.nbytes)
            self.mine[block] = 0 if each.is_from_target else self.random.integers(0, 256)
            post = transfer.post_recv if each.is_from_target else transfer.post_send
            posted.append(post(self.local, each.offset, each.nbytes, tag=each.tag))
        return posted

    def read_all(self) -> None:
        """Compare all of the far side's memory."""
        self.mine[:] = 0
        self.session.read(self.local[:], self.life.remote[:]).wait(PATIENCE)
        self.tally.wrong += not np.array_equal(self.mine, self.life.expected)

    def kill(self) -> None:
        """In the middle of a transfer, which must not be done with bytes that are not there."""
        self.settle()
        kind = self.random.integers(0, 3)
        if kind == 0:
            self.kill_during_messages()
        else:
            self.kill_during_transfer(self.blocks() if kind == 1 else np.array([[0, MEMORY]]))
        self.tally.kills += 1
        self.life = self.next_life()

    def kill_during_transfer(self, rows: np.ndarray) -> None:
        """Of a read, compare what has come if it ends well; a write ends, one way or the other."""
        reads = self.random.random() < 0.5
        work = self.post(rows, reads=reads)
        self.life.kill()
        try:
            work.wait(PATIENCE)
        except Error as error:
            self.tally.wrong += error.peer != TARGET
        else:
            if reads:
                self.compare(rows)

    def kill_during_messages(self) -> None:
        """Compare those that have come; each ends, one way or the other."""
        self.life.ask_for(messages := self.some_messages())
        posted = {each.tag: each for each in self.post_messages(messages)}
        self.life.kill()
        for each in messages:
            try:
                posted[each.tag].wait(PATIENCE)
            except Error as error:
                self.tally.wrong += error.peer != TARGET
            else:
                if each.is_from_target:
                    self.compare(np.array([[each.offset, each.nbytes]]))

    def settle(self) -> None:
        """Compare all that is there, and what was heard there."""
        self.read_all()
        heard = self.life.heard()
        self.tally.wrong += heard != self.life.notified
        self.tally.notifications += heard
        self.life.notified = 0

    def part(self) -> None:
        """End all connections: there are two where both sides have called at the same time."""
        self.session.disconnect(TARGET)
        self.tally.wrong += not self.life.is_parted()

    def step(self) -> None:
        """Do the next thing."""
        chance = self.random.random()
        if chance < self.kill_chance:
            self.kill()
        elif chance < self.kill_chance + 0.04:
            self.part()
            self.tally.disconnects += 1
        elif chance < self.kill_chance + 0.2:
            self.messages()
        else:
            self.transfer()


def _slices(rows: np.ndarray) -> list[slice]:
    return [slice(offset, offset + length) for offset, length in rows.tolist()]


def _resident() -> int:
    """Return the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _since(begun: float) -> float:
    return time.monotonic() - begun


def soak(plan: Soak) -> Tally:
    """Go on for so many seconds; a seed does the same each time, but for how far it comes."""
    soaker = Soaker(plan)
    if plan.whole:
        soaker.tally.wrong += p2p_whole.wrong_parts_of(plan.transports, plan.whole)
        soaker.tally.nbytes += 2 * plan.whole
    with soaker.session:
        soaker.kill()
        soaker.settle()  # connects
        soaker.part()
        most, held = _resident(), holdings.at_rest()
        begun = time.monotonic()
        while soaker.tally.kills < plan.kills if plan.kills else _since(begun) < plan.seconds:
            soaker.step()
            if _since(begun) < _WARM:
                most = max(most, _resident())
        soaker.settle()
        soaker.part()
        soaker.tally.grown = max(0, _resident() - most)
        soaker.tally.left = holdings.left_since(held)
        soaker.life.kill()
    return soaker.tally

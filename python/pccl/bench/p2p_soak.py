# SPDX-License-Identifier: Apache-2.0
"""Soak test: a session exchanges bytes with a target that is killed and restarted."""

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
_WARM = 10.0  # seconds, until the memory of this process is steady
_MOST_GROWN = 32 << 20  # bytes, afterwards: four times the memory of one target, which is temporary


@dataclass(frozen=True)
class Soak:
    """Parameters of a soak test, which ends after ``seconds`` or after ``kills`` kills."""

    transports: str
    seed: int
    seconds: float
    kills: int = 0  # limit instead of seconds; one step in three is a kill
    whole: int = 0  # bytes of an initial read and write; 0: none


@dataclass
class Tally:
    """Counts of operations and errors."""

    reads: int = 0
    writes: int = 0
    nbytes: int = 0
    kills: int = 0
    disconnects: int = 0
    notifications: int = 0
    messages: int = 0
    wrong: int = 0  # operations with wrong bytes, counts or errors
    grown: int = 0  # bytes of this process's memory beyond the maximum of the first 10 s
    left: list[str] = field(
        default_factory=list
    )  # additional descriptors, threads and mappings at the end

    def values(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    def has_failed(self) -> bool:
        """Return whether there were errors, leaks, or memory growth."""
        return bool(self.wrong or self.left or self.grown > _MOST_GROWN)


class Soaker:
    """Initiator with random operations, which compares the results with the expected contents."""

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
        """Start a new target."""
        self.lives += 1
        seed = self.plan.seed * 1000 + self.lives
        return Life(self.session, self.plan.transports, seed)

    def blocks(self) -> np.ndarray:
        """Return rows of offset and length without overlaps; some rows are adjacent."""
        count = int(self.random.integers(1, _MOST_BLOCKS))
        width = MEMORY // count
        lengths = self.random.integers(0, width + 1, count)
        lengths[self.random.random(count) < 0.2] = width
        return np.stack([np.arange(count) * width, lengths], axis=1)

    def transfer(self) -> None:
        """Read or write random blocks, and compare them."""
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
        """Start to read blocks, or to write new bytes into them."""
        for each in _slices(rows):
            self.mine[each] = 0 if reads else self.random.integers(0, 256)
        plan = self.session.prepare(self.local, rows, self.life.remote, rows)
        post = self.session.post_read if reads else self.session.post_write
        return post(plan, notify=notify)

    def compare(self, rows: np.ndarray) -> None:
        """Count an error unless these blocks equal those of the target."""
        same = all(
            np.array_equal(self.mine[each], self.life.expected[each]) for each in _slices(rows)
        )
        self.tally.wrong += not same

    def messages(self) -> None:
        """Exchange tagged messages, and compare the received ones."""
        self.life.request(messages := self.some_messages())
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
        """Return random messages in both directions, in random order, with distinct tags."""
        rows = self.random.permutation(self.blocks())[:_MOST_MESSAGES].tolist()
        tags = self.random.choice(2**32, len(rows), replace=False).tolist()
        comes = (self.random.random(len(rows)) < 0.5).tolist()
        return [
            Exchange(tag, offset, nbytes, each)
            for tag, (offset, nbytes), each in zip(tags, rows, comes, strict=True)
        ]

    def post_messages(self, messages: Sequence[Exchange]) -> list[p2p.Message]:
        """Post this side of the messages, in a different order than the target."""
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
        """Read and compare the whole memory of the target."""
        self.mine[:] = 0
        self.session.read(self.local[:], self.life.remote[:]).wait(PATIENCE)
        self.tally.wrong += not np.array_equal(self.mine, self.life.expected)

    def kill(self) -> None:
        """Kill the target during a transfer, which must not succeed with wrong bytes."""
        self.settle()
        kind = self.random.integers(0, 3)
        if kind == 0:
            self.kill_during_messages()
        else:
            self.kill_during_transfer(self.blocks() if kind == 1 else np.array([[0, MEMORY]]))
        self.tally.kills += 1
        self.life = self.next_life()

    def kill_during_transfer(self, rows: np.ndarray) -> None:
        """Kill the target during a transfer; compare the bytes of a successful read."""
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
        """Kill the target during messages; each must end, and received ones are compared."""
        self.life.request(messages := self.some_messages())
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
        """Compare the whole memory, and the number of received notifications."""
        self.read_all()
        received = self.life.received_notifications()
        self.tally.wrong += received != self.life.notified
        self.tally.notifications += received
        self.life.notified = 0

    def part(self) -> None:
        """Disconnect; there are two connections if both sides connected at the same time."""
        self.session.disconnect(TARGET)
        self.tally.wrong += not self.life.is_parted()

    def step(self) -> None:
        """Run the next random operation."""
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
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _since(begun: float) -> float:
    return time.monotonic() - begun


def soak(plan: Soak) -> Tally:
    """Run a soak test; equal seeds give equal operations, up to the number of steps."""
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

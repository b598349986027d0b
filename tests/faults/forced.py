# SPDX-License-Identifier: Apache-2.0
"""Collectives by an algorithm that is asked for, on random data: every rank knows what all give,
and so what it must get.
"""

from __future__ import annotations

import functools
import random
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = {"1KiB": 1 << 10, "256KiB": 256 << 10, "8MiB": 8 << 20}
MESSAGES = "messages"  # of all ranks with one of them; no algorithm makes them
UNTOUCHED = -2
REUSED = -1  # what is in buffers once their owner has another use for them

_PER_PAIR = ("gather", "scatter", "all_to_all")  # over links these go one way alone
_REDUCES = ("all_reduce", "reduce", "reduce_scatter")
_GIVES_PARTS = ("reduce_scatter", "all_to_all", "scatter", MESSAGES)
FROM_ROOT = ("broadcast", "scatter")
TO_ROOT = ("reduce", "gather")
_IN_PLACE = ("all_reduce", "reduce", "broadcast")
COLLECTIVES = (*_REDUCES, *_PER_PAIR, "broadcast", "all_gather")


@dataclass(frozen=True)
class Forced:
    """A collective, by one algorithm, of blocks of one size."""

    collective: str
    algorithm: str
    size: str

    def __str__(self) -> str:
        return f"{self.collective}:{self.algorithm}:{self.size}"

    @staticmethod
    def parse(text: str) -> Forced:
        return Forced(*text.split(":"))

    @property
    def count(self) -> int:
        """Elements of a block."""
        return BLOCKS[self.size] // 4

    @property
    def is_on_shm(self) -> bool:
        return self.algorithm.startswith("shm_")

    @property
    def gives_parts(self) -> bool:
        """Whether a rank has another block for each rank."""
        return self.collective in _GIVES_PARTS

    @property
    def environment(self) -> dict[str, str]:
        if self.collective == MESSAGES:
            return {}
        return {"PCCL_ALGORITHM": f"{self.collective}={self.algorithm}"}


def algorithms_of(collective: str) -> list[str]:
    """Return all that PCCL_ALGORITHM may say for it."""
    from pccl import schedule

    links = ["one_shot"] if collective in _PER_PAIR else schedule.algorithms(collective)
    two_shot = ["shm_two_shot"] if collective == "all_reduce" else []
    return [*links, "shm_one_shot", *two_shot, "shm_direct"]


def every() -> list[Forced]:
    ways = [(collective, way) for collective in COLLECTIVES for way in algorithms_of(collective)]
    return [Forced(*way, size) for way in [*ways, (MESSAGES, "link")] for size in BLOCKS]


class Pool:
    """Random numbers, from which all ranks take what each of them gives in each call."""

    _SLACK = 4096

    def __init__(self, forced: Forced, ranks: int, seed: str) -> None:
        self._seed = seed
        self._length = forced.count * (ranks if forced.gives_parts else 1)
        self._numbers = torch.randint(
            1 << 20,
            (self._length + self._SLACK,),
            dtype=torch.int32,
            generator=torch.Generator().manual_seed(zlib.crc32(seed.encode())),
        )

    def of(self, rank: int, number: int) -> torch.Tensor:
        """Give a block for each rank, or one for all."""
        start = random.Random(f"{self._seed}/{rank}/{number}").randrange(self._SLACK)
        return self._numbers[start : start + self._length]


@dataclass(frozen=True)
class Place:
    """Who calls, among whom; and the rank that is the root, or has to do with all messages."""

    rank: int
    ranks: int
    centre: int


class Call:
    """A rank's part in one call: its buffers, and what must then be in them."""

    def __init__(self, forced: Forced, place: Place, pool: Pool, number: int) -> None:
        self.place = place
        self._forced = forced
        self._parts = [pool.of(rank, number).split(forced.count) for rank in range(place.ranks)]
        self.given = self._make_given()
        self.taken = self.given
        if forced.collective not in _IN_PLACE:
            blocks = 1 if forced.collective in _REDUCES else len(self._sources())
            self.taken = torch.full((blocks * forced.count,), UNTOUCHED, dtype=torch.int32)

    def _make_given(self) -> torch.Tensor:
        if self._forced.collective in FROM_ROOT and not self.is_centre:
            return torch.full((self._forced.count,), UNTOUCHED, dtype=torch.int32)
        return torch.cat(self._parts[self.place.rank])

    def _sources(self) -> list[int]:
        """Return the ranks of which each gives this one a block."""
        if self._forced.collective in FROM_ROOT:
            return [self.place.centre]
        if self._forced.collective in TO_ROOT and not self.is_centre:
            return []
        everybody = list(range(self.place.ranks))
        return self.partners if self._forced.collective == MESSAGES else everybody

    @property
    def is_centre(self) -> bool:
        return self.place.rank == self.place.centre

    @property
    def partners(self) -> list[int]:
        others = [rank for rank in range(self.place.ranks) if rank != self.place.rank]
        return others if self.is_centre else [self.place.centre]

    def start(self, *, async_op: bool) -> list[dist.Work]:
        """Call it; without ``async_op``, collectives have then ended, and there is no work."""
        return [work for work in _START[self._forced.collective](self, async_op) if work]

    def blocks(self, buffer: torch.Tensor) -> list[torch.Tensor]:
        return list(buffer.split(self._forced.count))

    def check(self) -> None:
        sources = self._sources()
        if not sources:
            return
        part = self.place.rank if self._forced.gives_parts else 0
        got = [self._parts[source][part] for source in sources]
        reduces = self._forced.collective in _REDUCES
        expected = functools.reduce(torch.add, got) if reduces else torch.cat(got)
        if torch.equal(self.taken, expected):
            return
        wrong = (self.taken != expected).nonzero()
        at = int(wrong[0])
        raise AssertionError(
            f"wrong data: {len(wrong)} of {len(expected)} elements, the first at {at}: "
            f"{int(self.taken[at])}, not {int(expected[at])}"
        )

    def reuse_buffers(self) -> None:
        self.given.fill_(REUSED)
        self.taken.fill_(REUSED)


def _gather(call: Call, later: bool) -> list[dist.Work]:
    into = call.blocks(call.taken) if call.is_centre else None
    return [dist.gather(call.given, into, call.place.centre, async_op=later)]


def _scatter(call: Call, later: bool) -> list[dist.Work]:
    parts = call.blocks(call.given) if call.is_centre else None
    return [dist.scatter(call.taken, parts, call.place.centre, async_op=later)]


def _messages(call: Call, later: bool) -> list[dist.Work]:
    parts = call.blocks(call.given)
    sends = [dist.isend(parts[rank], rank) for rank in call.partners]
    into = zip(call.blocks(call.taken), call.partners, strict=True)
    return sends + [dist.irecv(block, rank) for block, rank in into]


_START: dict[str, Callable[[Call, bool], list[dist.Work]]] = {
    "all_reduce": lambda call, later: [dist.all_reduce(call.given, async_op=later)],
    "reduce": lambda call, later: [dist.reduce(call.given, call.place.centre, async_op=later)],
    "broadcast": lambda call, later: [
        dist.broadcast(call.given, call.place.centre, async_op=later)
    ],
    "all_gather": lambda call, later: [
        dist.all_gather_into_tensor(call.taken, call.given, async_op=later)
    ],
    "reduce_scatter": lambda call, later: [
        dist.reduce_scatter_tensor(call.taken, call.given, async_op=later)
    ],
    "all_to_all": lambda call, later: [
        dist.all_to_all_single(call.taken, call.given, async_op=later)
    ],
    "gather": _gather,
    "scatter": _scatter,
    MESSAGES: _messages,
}

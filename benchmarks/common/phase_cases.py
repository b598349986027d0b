# SPDX-License-Identifier: Apache-2.0
"""What each rank of benchmarks/phases_table.py does, as a program: bytes of a buffer, rounds."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import pccl

RANKS = 8
PIECE = 1 << 21  # elements


def _pairs(distance: int) -> dict[str, Any]:
    links = [[rank, rank ^ distance] for rank in range(RANKS) if rank < rank ^ distance]
    return {"links": links, "duplex": True}


def _rotation(distance: int) -> dict[str, Any]:
    return {"links": [[rank, (rank + distance) % RANKS] for rank in range(RANKS)]}


PHASES: dict[str, Any] = {
    "ring": {"links": "ring"},
    "strided": _rotation(2),
    **{f"pairs{distance}": _pairs(distance) for distance in (1, 2, 4)},
    **{f"rotation{distance}": _rotation(distance) for distance in range(1, RANKS)},
}


def _switch(phase: str) -> None:
    import pccl

    pccl.switch_phase(phase, timeout=30)


class Cases:
    """The cases of the table, for one rank."""

    def __init__(self, comm: pccl.Communicator, nbytes: int) -> None:
        self.comm = comm
        self.rank = comm.rank
        self.x = np.ones(nbytes // 4, np.float32)
        self.scratch = np.empty_like(self.x)
        self.halves = comm.split(comm.rank % 2)

    def cost_of_switch(self, distance: int) -> float:
        """Return by how many seconds an exchange takes longer that follows a switch.

        Beside the switch itself these are of ranks that come late, and of connections that are new.
        """
        piece, into = self.x[:PIECE], self.scratch[:PIECE]
        start = time.perf_counter()
        _switch(f"pairs{distance}")
        self.exchange(piece, self.rank ^ distance, into, self.rank ^ distance)
        first = time.perf_counter()
        self.exchange(piece, self.rank ^ distance, into, self.rank ^ distance)
        return (first - start) - (time.perf_counter() - first)

    def exchange(self, there: np.ndarray, to: int, here: np.ndarray, source: int) -> None:
        """Send and receive at a time."""
        sent = self.comm.send(there, to, async_op=True)
        self.comm.recv(here, source)
        sent.wait()

    def exchange_and_reduce(self, given: slice, kept: slice, partner: int) -> None:
        """Give a part, and take the greater of the partner's and one's own of the other.

        In pieces, so that one is reduced while the next comes.
        """
        length = kept.stop - kept.start
        pieces = [(low, min(low + PIECE, length)) for low in range(0, length, PIECE)]
        there, here, scratch = self.x[given], self.x[kept], self.scratch[kept]
        sent = [self.comm.send(there[low:high], partner, async_op=True) for low, high in pieces]
        for low, high in pieces:
            self.comm.recv(scratch[low:high], partner)
            np.maximum(here[low:high], scratch[low:high], out=here[low:high])
        for each in sent:
            each.wait()

    def shift(self, elements: int) -> None:
        """Pass on to the next rank of the ring."""
        there, here = self.x[:elements], self.scratch[:elements]
        self.exchange(there, (self.rank + 1) % RANKS, here, (self.rank - 1) % RANKS)

    def ring_all_reduce(self) -> None:
        self.comm.all_reduce(self.x, "max")

    def halving_and_doubling(self) -> None:
        """Reduce halves of halves with the far, the middle and the near partner, and back."""
        spans = []
        low, high = 0, self.x.size
        for distance in (4, 2, 1):
            _switch(f"pairs{distance}")
            middle = (low + high) // 2
            keeps_low = not self.rank & distance
            kept, given = ((low, middle), (middle, high))[:: 1 if keeps_low else -1]
            self.exchange_and_reduce(slice(*given), slice(*kept), self.rank ^ distance)
            spans.append((distance, kept, given))
            low, high = kept
        for distance, kept, given in reversed(spans):
            if distance != 1:
                _switch(f"pairs{distance}")
            there, here = self.x[slice(*kept)], self.x[slice(*given)]
            self.exchange(there, self.rank ^ distance, here, self.rank ^ distance)

    def forwarded_all_to_all(self) -> None:
        """Pass blocks on round the ring; each rank takes its own out."""
        block = self.x.size // RANKS
        for step in range(RANKS - 1):
            self.shift((RANKS - 1 - step) * block)

    def rotating_all_to_all(self) -> None:
        block = self.x.size // RANKS
        for distance in range(1, RANKS):
            _switch(f"rotation{distance}")
            here = self.scratch[:block]
            to, source = (self.rank + distance) % RANKS, (self.rank - distance) % RANKS
            self.exchange(self.x[to * block : (to + 1) * block], to, here, source)

    def forwarded_groups(self) -> None:
        """Make two rings over the one: every message takes two links, beside the other group's."""
        part = self.x.size // (RANKS // 2)
        for step in range(2 * (RANKS // 2 - 1)):
            self.shift(part)
            self.shift(part)
            if step < RANKS // 2 - 1:
                np.maximum(self.x[:part], self.scratch[:part], out=self.x[:part])

    def switched_groups(self) -> None:
        _switch("strided")
        self.halves.all_reduce(self.x, "max")


BEFORE = {
    "ring all_reduce": "ring",
    "switched halving and doubling": "ring",
    "forwarded all_to_all": "ring",
    "rotating all_to_all": "strided",
    "forwarded groups": "ring",
    "switched groups": "ring",
}


def run(comm: pccl.Communicator, nbytes: int, rounds: int) -> dict[str, Any]:
    """Return seconds by case, of the slowest rank in each round, and of switches."""
    cases = Cases(comm, nbytes)
    made: dict[str, Callable[[], None]] = {
        "ring all_reduce": cases.ring_all_reduce,
        "switched halving and doubling": cases.halving_and_doubling,
        "forwarded all_to_all": cases.forwarded_all_to_all,
        "rotating all_to_all": cases.rotating_all_to_all,
        "forwarded groups": cases.forwarded_groups,
        "switched groups": cases.switched_groups,
    }
    switches = [cases.cost_of_switch(distance) for distance in (4, 2, 1) * rounds]
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(rounds):
        for name, call in made.items():
            _switch("ring")
            comm.barrier()
            _switch(BEFORE[name])
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    _switch("ring")
    slowest = np.array([seconds[name] for name in made])
    comm.all_reduce(slowest, "max")
    by_case = dict(zip(made, slowest.tolist(), strict=True))
    return {"seconds": by_case, "switches": switches}


def main() -> None:
    import pccl

    comm = pccl.Communicator(rendezvous="env://", timeout=120)
    found = run(comm, int(sys.argv[1]), int(sys.argv[2]))
    if comm.rank == 0:
        Path(os.environ["RESULT"]).write_text(json.dumps(found) + "\n")
    comm.barrier()


if __name__ == "__main__":
    main()

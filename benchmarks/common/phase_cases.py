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


class Cases:
    """The cases of the table, for one rank."""

    def __init__(self, comm: pccl.Communicator, nbytes: int) -> None:
        self.comm = comm
        self.rank = comm.rank
        self.x = np.ones(nbytes // 4, np.float32)
        self.scratch = np.empty_like(self.x)
        self.halves = comm.split(comm.rank % 2)
        self.switches: list[float] = []

    def switch(self, phase: str) -> None:
        import pccl

        start = time.perf_counter()
        pccl.switch_phase(phase, timeout=30)
        self.switches.append(time.perf_counter() - start)

    def exchange(self, there: np.ndarray, to: int, here: np.ndarray, source: int) -> None:
        """Send and receive at a time."""
        sent = self.comm.send(there, to, async_op=True)
        self.comm.recv(here, source)
        sent.wait()

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
            if distance != 4:
                self.switch(f"pairs{distance}")
            middle = (low + high) // 2
            keeps_low = not self.rank & distance
            kept, given = ((low, middle), (middle, high))[:: 1 if keeps_low else -1]
            here = self.scratch[slice(*kept)]
            self.exchange(self.x[slice(*given)], self.rank ^ distance, here, self.rank ^ distance)
            np.maximum(self.x[slice(*kept)], here, out=self.x[slice(*kept)])
            spans.append((distance, kept, given))
            low, high = kept
        for distance, kept, given in reversed(spans):
            if distance != 1:
                self.switch(f"pairs{distance}")
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
            self.switch(f"rotation{distance}")
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
        self.switch("strided")
        self.halves.all_reduce(self.x, "max")


BEFORE = {
    "ring all_reduce": "ring",
    "switched halving and doubling": "pairs4",
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
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(rounds):
        for name, call in made.items():
            cases.switch("ring")
            comm.barrier()
            cases.switch(BEFORE[name])
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    cases.switch("ring")
    slowest = np.array([seconds[name] for name in made])
    comm.all_reduce(slowest, "max")
    by_case = dict(zip(made, slowest.tolist(), strict=True))
    return {"seconds": by_case, "switches": cases.switches}


def main() -> None:
    import pccl

    comm = pccl.Communicator(rendezvous="env://", timeout=120)
    found = run(comm, int(sys.argv[1]), int(sys.argv[2]))
    if comm.rank == 0:
        Path(os.environ["RESULT"]).write_text(json.dumps(found) + "\n")
    comm.barrier()


if __name__ == "__main__":
    main()

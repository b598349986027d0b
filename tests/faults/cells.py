# SPDX-License-Identifier: Apache-2.0
"""The cells of the fault matrix: what goes wrong, over what, during which operation, and what then
must be seen on every rank that survives.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from faults import forced
from faults.forced import Forced

BREAKING = ("kill", "stop", "close", "link_down", "garbage", "half_frame")
GIVES_UP = "gives_up"  # a call, and has another use for its buffers at once
FAULTS = (*BREAKING, GIVES_UP)
OWN_PLUGIN = "own_plugin"  # PCCL's loader over PCCL's plug-in for NCCL
STRICT_PLUGIN = "strict_plugin"  # over the strict plug-in of tests/fakes/netplugin
SETTINGS = ("shm", "tcp", "mixed", OWN_PLUGIN, STRICT_PLUGIN)
ON_LINKS = tuple(setting for setting in SETTINGS if setting != "mixed")
WITHIN_A_HOST = ("shm", STRICT_PLUGIN)
OPERATIONS = (
    "all_reduce",
    "all_reduce_16MB",
    "broadcast",
    "all_to_all",
    "barrier",
    "send_recv",
    "new_group",
    "init",
)
SIZES = (3, 4)
SIZES_OF_FORCED = (2, 3, 4)

# How far a rank has come that fails while it joins: not to the library at all; known to be on its
# way; known with all that others need to connect to it.
STEPS = ("absent", "announced", "present")

PEER_TIMEOUT_S = 1.0  # after which a host that sends nothing counts as lost
GRACE_S = 2.0  # a death is told this long after it, a stall this long after the timeout
LONGEST_LOOP = 100_000  # operations until a survivor gives up waiting for its error


@dataclass(frozen=True)
class Cell:
    """One run: everything that is random in it follows from the seed.

    Where a rank gives up, the operation is a collective by one algorithm; see ``forced``.
    """

    fault: str
    setting: str
    operation: str
    ranks: int
    seed: int

    def __str__(self) -> str:
        return f"{self.fault}/{self.setting}/{self.operation}/{self.ranks}/{self.seed}"

    @staticmethod
    def parse(text: str) -> Cell:
        fault, setting, operation, ranks, seed = text.split("/")
        return Cell(fault, setting, operation, int(ranks), int(seed))

    def _random(self) -> random.Random:
        return random.Random(str(self))

    @property
    def forced(self) -> Forced:
        return Forced.parse(self.operation)

    @property
    def is_heavy(self) -> bool:
        """Whether its ranks do not just wait, but compute."""
        return self.fault == GIVES_UP and self.forced.count > 1 << 20

    @property
    def traits(self) -> set[str]:
        """What can be asked for by name."""
        return {self.fault, self.setting, *self.operation.split(":")}

    @property
    def victim(self) -> int:
        """Rank 0 serves the torch store of no test, so any rank may fail."""
        return self._random().randrange(self.ranks)

    @property
    def timeout_s(self) -> float:
        """Of every operation; a link that is cut must show before, and whoever gives up."""
        if self.fault == GIVES_UP:
            return 30.0 if self.is_heavy else 8.0
        return 4.0 if self.fault == "link_down" else 2.0

    @property
    def iteration(self) -> int:
        """How many operations succeed before: with none, ranks have not met yet."""
        if self.operation == "init":
            return 0
        draw = self._random()
        draw.random()
        if self.fault == GIVES_UP:
            return draw.randrange(3)
        return draw.choice([1, 2, 3, 5] if self.is_damage else [0, 1, 2, 5])

    @property
    def delay_s(self) -> float | None:
        """So long after the start of the operation, by another thread; None: instead of it."""
        draw = self._random()
        # A rank that leaves the job's group can still make another.
        leaves_first = self.fault == "close" and self.operation == "new_group"
        if self.operation == "init" and self.fault != "link_down":
            return None
        if self.is_damage or leaves_first or draw.random() < 0.5:
            return None
        return draw.uniform(0.0, 0.03)

    @property
    def step(self) -> str | None:
        """How far the victim has come, where it fails in the middle of joining the job."""
        if self.operation != "init" or self.is_damage or self.fault == "link_down":
            return None
        return self._random().choice(STEPS)

    @property
    def is_damage(self) -> bool:
        return self.fault in ("garbage", "half_frame")

    @property
    def damages_the_store(self) -> bool:
        """A rank that is joining has no connection to damage, but publishes where it is."""
        return self.is_damage and self.operation in ("new_group", "init")

    @property
    def is_cut_off_early(self) -> bool:
        """Nothing is connected yet: a peer that is cut off is like one that is stopped."""
        return self.fault == "link_down" and self.iteration == 0

    @property
    def is_stall(self) -> bool:
        return self.fault == "stop"

    @property
    def expected(self) -> tuple[str, ...]:
        """The classes of pccl.errors that a survivor may raise."""
        if self.fault == GIVES_UP:
            return ("PeerLostError", "TimeoutError")  # as the victim has timed out
        if self.is_stall:
            return ("TimeoutError",)
        if self.step == "absent":
            return ("TimeoutError",)  # nobody can know of a rank that has not come
        if self.is_cut_off_early:
            return ("PeerLostError", "TimeoutError")
        if self.fault == "half_frame" and self.setting == "shm":
            # On a segment half a header lies over a whole one, and the two together look like one.
            return ("PeerLostError", "MismatchError")
        return ("PeerLostError",)

    def limit_s(self, error: str) -> float:
        """From the fault to the error."""
        if self.fault == GIVES_UP:
            return GRACE_S
        if error == "TimeoutError" or self.is_cut_off_early:
            return self.timeout_s + GRACE_S
        return GRACE_S + (PEER_TIMEOUT_S if self.fault == "link_down" else 0)


def cells(seed: int, can_pull_links: bool) -> list[Cell]:
    """All cells of one round. A link can be pulled only where there is one."""
    every = itertools.product(BREAKING, SETTINGS, OPERATIONS, SIZES)
    return [
        Cell(fault, setting, operation, ranks, seed)
        for fault, setting, operation, ranks in every
        if fault != "link_down" or (can_pull_links and setting not in WITHIN_A_HOST)
    ] + [
        Cell(GIVES_UP, _setting_of(operation, ranks, seed), str(operation), ranks, seed)
        for operation, ranks in itertools.product(forced.every(), SIZES_OF_FORCED)
    ]


def _setting_of(operation: Forced, ranks: int, seed: int) -> str:
    """Links are of one kind in one round, and of another in another."""
    if operation.is_on_shm:
        return "shm"
    return random.Random(f"{operation}/{ranks}/{seed}").choice(ON_LINKS)


def subset(everything: list[Cell], seed: int, count: int) -> list[Cell]:
    """So many of these cells, every trait among them, and few that are heavy."""
    shuffled = random.Random(seed).sample(everything, len(everything))
    shuffled.sort(key=lambda cell: cell.is_heavy)
    missing = set[str]().union(*(cell.traits for cell in everything))
    chosen: list[Cell] = []
    for cell in shuffled:
        if missing & cell.traits:
            chosen.append(cell)
            missing -= cell.traits
    rest = [cell for cell in shuffled if cell not in chosen]
    return chosen + rest[: max(0, count - len(chosen))]

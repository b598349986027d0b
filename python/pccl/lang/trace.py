# SPDX-License-Identifier: Apache-2.0
"""What an algorithm does, operation by operation, as it is written down while its function runs."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass
from typing import TypeAlias

from pccl.lang.geometry import REDUCTIONS, Atom, Buffer, Geometry, Home
from pccl.lang.origin import Line, ProgramError, caller

__all__ = ["Location", "Operation", "Switch", "Trace", "Version", "check_phase"]

Location: TypeAlias = tuple[int, Atom]  # rank, chunk
Version: TypeAlias = tuple[Location, int]

MOST_OPERATIONS = 1 << 20


@dataclass(frozen=True)
class Operation:
    """Chunks that go from one rank to another, or stay at theirs.

    Attributes
    ----------
    reads, writes
        Chunks at ``source`` and ``target``, one by one.
    operands
        What is added at ``target``; None where they are copied.
    """

    index: int
    line: Line
    source: int
    target: int
    channel: int
    reads: tuple[Atom, ...]
    writes: tuple[Atom, ...]
    operands: tuple[Atom, ...] | None

    @property
    def is_local(self) -> bool:
        """Whether no message is needed."""
        return self.source == self.target


@dataclass(frozen=True)
class Switch:
    """The network goes to another phase before the operation ``index``."""

    index: int
    line: Line
    phase: str


def check_phase(phase: object) -> str:
    """Return it if it is a name of a phase."""
    if isinstance(phase, str) and re.fullmatch(r"[!-~]{1,64}", phase):
        return phase
    raise ProgramError(
        caller(), f"{phase!r} is no name of a phase: 1 to 64 printable characters, and no space"
    )


class Trace:
    """Operations so far, and what every chunk holds after them."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.operations: list[Operation] = []
        self.switches: list[Switch] = []
        self.scratch: dict[int, int] = collections.defaultdict(int)  # chunks that were named
        self.homes: dict[Location, Home] = {}
        self.written: dict[tuple[int, Atom], int] = {}  # by operation and chunk: which version
        self.readers: dict[Version, list[int]] = collections.defaultdict(list)
        self._versions: dict[Location, int] = collections.defaultdict(int)
        self._writers: dict[Location, Line] = {}
        self._latest: dict[tuple[int, Home], Atom] = {}  # where a rank has what it has of it
        self._autos = 0

    def version(self, location: Location) -> int:
        """Return how often a chunk has been written."""
        return self._versions[location]

    def home(self, location: Location) -> Home | None:
        """Return what a chunk holds a value of; None where it holds nothing."""
        rank, atom = location
        if atom.buffer == "input":
            return self.geometry.home_of_input(rank, atom.chunk)
        return self.homes.get(location)

    def add(
        self,
        source: int,
        reads: tuple[Atom, ...],
        target: int,
        writes: tuple[Atom, ...],
        *,
        operands: tuple[Atom, ...] | None,
        channel: int,
    ) -> None:
        """Write down an operation whose chunks have been checked."""
        line = caller()
        if len(self.operations) == MOST_OPERATIONS:
            raise ProgramError(line, f"more than {MOST_OPERATIONS} operations; is there no end?")
        index = len(self.operations)
        self.operations.append(
            Operation(index, line, source, target, channel, reads, writes, operands)
        )
        homes = [self.home((source, atom)) for atom in reads]
        for atom in reads:
            self._note_reader((source, atom), index)
        for atom in operands or ():
            self._note_reader((target, atom), index)
        for atom, home in zip(writes, homes, strict=True):
            assert home is not None
            self._versions[target, atom] += 1
            self.written[index, atom] = self._versions[target, atom]
            self._writers[target, atom] = line
            self.homes[target, atom] = home
            self._latest[target, home] = atom

    def switch_phase(self, phase: str) -> None:
        """Write down that the network goes to another phase."""
        self.switches.append(Switch(len(self.operations), caller(), check_phase(phase)))

    def place_at(self, rank: int, home: Home) -> Atom:
        """Return where a value goes that is sent to a rank: its output, else scratch of its own."""
        output = self.geometry.output_of(home, rank)
        if output is not None:
            return output
        return self.spare()

    def spare(self) -> Atom:
        """Return a chunk of scratch that nobody has."""
        self._autos += 1
        return Atom("auto", self._autos)

    def operand_at(self, rank: int, home: Home) -> Atom:
        """Return what a rank has of it: what it got last, else its input."""
        own = self.geometry.input_of(home)
        if own is None:
            raise ProgramError(
                caller(),
                f"{self.geometry.collective} adds nothing up; there are copy_to, "
                f"and reduce_to for {', '.join(REDUCTIONS)}",
            )
        return self._latest.get((rank, home), own)

    def check_read(self, location: Location, version: int) -> None:
        """Raise ProgramError where a chunk holds nothing, or what has been overwritten."""
        rank, atom = location
        name = f"{atom.buffer} chunk {atom.chunk} of rank {rank}"
        if self.home(location) is None:
            raise ProgramError(caller(), f"{name} holds nothing yet")
        if version != self._versions[location]:
            raise ProgramError(
                caller(),
                f"{name} is not what it was any more: it was overwritten at "
                f"{self._writers[location]}",
            )

    def check_rank(self, rank: object) -> int:
        """Return it if it is a rank."""
        if isinstance(rank, int) and 0 <= rank < self.geometry.ranks:
            return rank
        raise ProgramError(
            caller(), f"{rank!r} is no rank; ranks are 0 to {self.geometry.ranks - 1}"
        )

    def check_range(self, rank: int, buffer: Buffer, chunk: int, count: int) -> None:
        """Raise ProgramError where a buffer has no such chunks."""
        if not self.geometry.exists(rank, buffer):
            raise ProgramError(
                caller(), f"rank {rank} has no {buffer}: only root {self.geometry.root} does"
            )
        size = self.geometry.size(buffer)
        if chunk < 0 or count < 1 or chunk + count > size:
            raise ProgramError(
                caller(),
                f"{buffer} of rank {rank} has chunks 0 to {size - 1}, not {count} from {chunk} on",
            )

    def _note_reader(self, location: Location, index: int) -> None:
        self.readers[location, self._versions[location]].append(index)

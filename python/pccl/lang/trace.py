# SPDX-License-Identifier: Apache-2.0
"""Trace of an algorithm: the operations that are recorded while its function runs."""

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
    """Copy or reduction of chunks from one rank to another, or within one rank.

    Attributes
    ----------
    reads, writes
        Chunks on ``source`` and ``target``, in corresponding order.
    operands
        Chunks on ``target`` that are added; None for a copy.
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
        """Whether the operation needs no message."""
        return self.source == self.target


@dataclass(frozen=True)
class Switch:
    """Switch of the network to another phase before the operation ``index``."""

    index: int
    line: Line
    phase: str


def check_phase(phase: object) -> str:
    """Return ``phase`` if it is a valid name; otherwise raise ProgramError."""
    if isinstance(phase, str) and re.fullmatch(r"[!-~]{1,64}", phase):
        return phase
    raise ProgramError(
        caller(), f"{phase!r} is no name of a phase: 1 to 64 printable characters, and no space"
    )


class Trace:
    """Operations so far, and the resulting contents of every chunk."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.operations: list[Operation] = []
        self.switches: list[Switch] = []
        self.scratch: dict[int, int] = collections.defaultdict(int)  # by rank: chunks in use
        self.homes: dict[Location, Home] = {}
        self.written: dict[tuple[int, Atom], int] = {}  # by operation and chunk: version
        self.readers: dict[Version, list[int]] = collections.defaultdict(list)
        self._versions: dict[Location, int] = collections.defaultdict(int)
        self._writers: dict[Location, Line] = {}
        self._latest: dict[tuple[int, Home], Atom] = {}  # latest location of a value
        self._autos = 0

    def version(self, location: Location) -> int:
        """Return the number of writes to a chunk."""
        return self._versions[location]

    def home(self, location: Location) -> Home | None:
        """Return the identity of a chunk's value; None where the chunk is empty."""
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
        """Record an operation whose chunks have been checked."""
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
        """Record a switch of the network to another phase."""
        self.switches.append(Switch(len(self.operations), caller(), check_phase(phase)))

    def place_at(self, rank: int, home: Home) -> Atom:
        """Return the destination of a value on a rank: its output, or new scratch."""
        output = self.geometry.output_of(home, rank)
        if output is not None:
            return output
        return self.spare()

    def spare(self) -> Atom:
        """Return an unused chunk of scratch."""
        self._autos += 1
        return Atom("auto", self._autos)

    def operand_at(self, rank: int, home: Home) -> Atom:
        """Return the location of a rank's latest value of ``home``, or its input."""
        own = self.geometry.input_of(home)
        if own is None:
            raise ProgramError(
                caller(),
                f"{self.geometry.collective} adds nothing up; there are copy_to, "
                f"and reduce_to for {', '.join(REDUCTIONS)}",
            )
        return self._latest.get((rank, home), own)

    def check_read(self, location: Location, version: int) -> None:
        """Raise ProgramError where a chunk is empty, or its value was overwritten."""
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
        """Return ``rank`` if it is valid; otherwise raise ProgramError."""
        if isinstance(rank, int) and 0 <= rank < self.geometry.ranks:
            return rank
        raise ProgramError(
            caller(), f"{rank!r} is no rank; ranks are 0 to {self.geometry.ranks - 1}"
        )

    def check_range(self, rank: int, buffer: Buffer, chunk: int, count: int) -> None:
        """Raise ProgramError where the range exceeds the buffer."""
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

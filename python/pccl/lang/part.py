# SPDX-License-Identifier: Apache-2.0
"""Operations of a part of an algorithm among some ranks, recorded in the whole as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pccl.lang.geometry import Atom, Home
from pccl.lang.origin import ProgramError, caller
from pccl.lang.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl.lang.geometry import Geometry

__all__ = ["Held", "Part"]

Held: TypeAlias = tuple[int, Home]  # a rank, and the identity of its value


class Part(Trace):
    """Trace of a part among some ranks, which also records each operation in the whole.

    A chunk of a part is one or several chunks of the whole: ``blocks`` returns the chunks of the
    whole for a block of the part. ``held`` contains the locations of the inputs in the whole.
    """

    def __init__(
        self,
        whole: Trace,
        geometry: Geometry,
        ranks: list[int],
        blocks: Callable[[int], list[Home]],
        held: dict[Held, Atom],
        *,
        into_output: bool,
    ) -> None:
        super().__init__(geometry)
        self._whole = whole
        self._ranks = ranks
        self._blocks = blocks
        self._held = held
        self._into_output = into_output
        self._places: dict[tuple[int, Atom], tuple[Atom, ...]] = {}

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
        """Record an operation, in the whole as well."""
        super().add(source, reads, target, writes, operands=operands, channel=channel)
        self._whole.add(
            self._ranks[source],
            self._in_whole(source, reads),
            self._ranks[target],
            self._in_whole(target, writes),
            operands=None if operands is None else self._in_whole(target, operands),
            channel=channel,
        )

    def switch_phase(self, phase: str) -> None:
        """Raise ProgramError, because other parts run concurrently."""
        raise ProgramError(
            caller(),
            f"a part of a composed algorithm cannot switch to phase {phase}: others run beside it",
        )

    def results(self) -> Iterator[tuple[Held, Atom]]:
        """Yield the location of each result of each rank."""
        for rank in range(self.geometry.ranks):
            if not self.geometry.exists(rank, "output"):
                continue
            for index in range(self.geometry.size("output")):
                homes = self._homes(self.geometry.home_of_output(rank, index))
                atoms = self._in_whole(rank, (Atom("output", index),))
                yield from zip(((self._ranks[rank], home) for home in homes), atoms, strict=True)

    def _in_whole(self, rank: int, atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple(each for atom in atoms for each in self._place(rank, atom))

    def _place(self, rank: int, atom: Atom) -> tuple[Atom, ...]:
        if (rank, atom) not in self._places:
            self._places[rank, atom] = tuple(self._new_place(rank, atom))
        return self._places[rank, atom]

    def _new_place(self, rank: int, atom: Atom) -> Iterator[Atom]:
        own = self._ranks[rank]
        if atom.buffer == "input":
            homes = self._homes(self.geometry.home_of_input(rank, atom.chunk))
            return (self._held[own, home] for home in homes)
        if atom.buffer == "output" and self._into_output:
            homes = self._homes(self.geometry.home_of_output(rank, atom.chunk))
            return (self._whole.place_at(own, home) for home in homes)
        return (self._whole.spare() for _ in self._homes(Home(0, 0)))

    def _homes(self, home: Home) -> list[Home]:
        """Return the identities in the whole of a chunk of the part."""
        homes = self._blocks(home.block)
        length = len(homes) // self.geometry.chunks
        return homes[home.chunk * length :][:length]

# SPDX-License-Identifier: Apache-2.0
"""Algorithms in terms of chunks: functions that copy chunks and add them up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pccl.arguments import require
from pccl.capsule import Capsule
from pccl.errors import InvalidArgumentError
from pccl.lang.building import About, capsule_of, check_protocol, replicated
from pccl.lang.chunks import Chunks
from pccl.lang.geometry import COLLECTIVES, ROOTED, Atom, Buffer, Collective, Geometry, Protocol
from pccl.lang.lowering import lower
from pccl.lang.origin import ProgramError, caller, line_of
from pccl.lang.rank_numbers import numbers_of, numbers_text
from pccl.lang.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Algorithm", "Program", "algorithm"]

MOST_CHUNKS = 1 << 20  # of a buffer


class Program:
    """What an algorithm's function is given: buffers of all ranks, in chunks.

    Attributes
    ----------
    collective
        What the algorithm makes.
    ranks
        How many there are.
    chunks
        Of each block: of the whole buffer of all_reduce, broadcast and reduce; of what one rank
        gives or gets for the others.
    root
        Of broadcast, reduce, gather and scatter; else 0.
    """

    def __init__(self, geometry: Geometry, trace: Trace | None = None) -> None:
        require(geometry, Geometry, "geometry", "a pccl.lang.geometry.Geometry")
        self.collective = geometry.collective
        self.ranks = geometry.ranks
        self.chunks = geometry.chunks
        self.root = geometry.root
        self._trace = trace or Trace(geometry)

    def input(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of what a rank gives.

        Parameters
        ----------
        rank
            Whose.
        chunk, count
            The first, and how many. Buffers with a block for each rank count through: chunk ``j``
            of block ``b`` is ``b * chunks + j``.

        Raises
        ------
        ProgramError
            There is no such rank, it has no input, or not so many chunks.
        """
        return self._chunks(rank, "input", chunk, count)

    def output(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of what a rank gets, with what they hold now, or to copy to.

        Parameters
        ----------
        rank, chunk, count
            As for ``input``.

        Raises
        ------
        ProgramError
            There is no such rank, it has no output, or not so many chunks.
        """
        return self._chunks(rank, "output", chunk, count)

    def scratch(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of memory that a rank has while the collective runs.

        Chunks of a block may differ in length, and so a chunk keeps its index modulo ``chunks``
        wherever it goes, in scratch too.

        Parameters
        ----------
        rank, chunk, count
            As for ``input``; there is as much as is named.

        Raises
        ------
        ProgramError
            There is no such rank, or there are too many chunks.
        """
        rank = self._trace.check_rank(rank)
        if chunk < 0 or count < 1 or chunk + count > MOST_CHUNKS:
            raise ProgramError(caller(), f"scratch has no {count} chunks from {chunk} on")
        self._trace.scratch[rank] = max(self._trace.scratch[rank], chunk + count)
        return self._at(rank, "scratch", chunk, count)

    def switch_phase(self, phase: str) -> None:
        """Have the network go to another phase, once all ranks have done all that comes before.

        What comes after goes over the links of that phase alone. Scratch does not outlive it.

        Parameters
        ----------
        phase
            Its name in the description of the cluster.

        Raises
        ------
        ProgramError
            It is no name, or this is a part of a composed algorithm.
        """
        self._trace.switch_phase(phase)

    def _chunks(self, rank: int, buffer: Buffer, chunk: int, count: int) -> Chunks:
        rank = self._trace.check_rank(rank)
        self._trace.check_range(rank, buffer, chunk, count)
        return self._at(rank, buffer, chunk, count)

    def _at(self, rank: int, buffer: Buffer, chunk: int, count: int) -> Chunks:
        atoms = tuple(Atom(buffer, index) for index in range(chunk, chunk + count))
        versions = tuple(self._trace.version((rank, atom)) for atom in atoms)
        return Chunks(self._trace, rank, atoms, versions)


@dataclass(frozen=True)
class Algorithm:
    """A function that says what a collective does with chunks; ``build`` makes a capsule of it.

    Called with a ``Program``, it is a part of another algorithm.

    Attributes
    ----------
    function
        Takes a ``Program``, and parameters of its own.
    collective
        What it makes.
    ranks
        For how many, or for which numbers; None for any number, which ``build`` is told.
    chunks
        Of each block, or a function that says how many there are for so many ranks.
    root
        Of broadcast, reduce, gather and scatter.
    slots
        Messages that may wait between two ranks on one channel.
    protocol
        By which messages should travel between GPUs, as for ``pccl.Capsule.of``.
    """

    function: Callable[..., object]
    collective: Collective
    ranks: int | tuple[int, ...] | None
    chunks: int | Callable[[int], int]
    root: int
    slots: int
    protocol: Protocol = ""

    def __call__(self, program: Program, **parameters: Any) -> object:
        """Run the function as a part of ``program``."""
        require(program, Program, "program", "the pccl.lang.Program that a function is given")
        return self.function(program, **parameters)

    def build(
        self,
        name: str | None = None,
        *,
        ranks: int | Iterable[int] | None = None,
        instances: int = 1,
        sizes: str = "..",
        author: str = "",
        licence: str = "",
        note: str = "",
        **parameters: Any,
    ) -> Capsule:
        """Return the capsule of what the function says, verified.

        Parameters
        ----------
        name
            The capsule's; None for that of the function.
        ranks
            Where the algorithm is for any number, or for several. Of several, ``range(2, 17)`` or
            ``[2, 4, 8]``, the capsule has the programs for each: a group takes those for its own.
        instances
            Copies of the program that run side by side, each over a part of each block.
        sizes, author, licence, note
            As for ``pccl.Capsule.of``.
        parameters
            For the function.

        Raises
        ------
        InvalidArgumentError
            The algorithm is for other ranks, or takes no such shape.
        ProgramError
            The algorithm is wrong; the message names the line, and the steps in conflict, and the
            number of ranks where there are several.
        """
        name = name or self.function.__name__
        about = About(name, author, licence, note, sizes, self.protocol)
        asked = self.ranks if ranks is None else ranks
        if asked is None or isinstance(asked, int):
            return self._built(asked, about, instances, parameters)
        return Capsule.join(
            self._one_of_several(number, about, instances, parameters)
            for number in numbers_of(asked)
        )

    def _one_of_several(
        self, ranks: int, about: About, instances: int, parameters: Mapping[str, Any]
    ) -> Capsule:
        try:
            return self._built(ranks, about, instances, parameters)
        except ProgramError as error:
            raise error.for_ranks(ranks) from None

    def _built(
        self, ranks: int | None, about: About, instances: int, parameters: Mapping[str, Any]
    ) -> Capsule:
        definition = line_of(self.function)
        geometry = self.geometry(ranks)
        program = Program(geometry)
        self.function(program, **parameters)
        whole = replace(geometry, chunks=geometry.chunks * instances)

        def attempt(*, fused: bool) -> Capsule:
            lowered = lower(program._trace, fused=fused)
            lowered = replicated(lowered, geometry.chunks, instances, definition)
            return capsule_of(lowered, whole, self.slots, about, definition)

        try:
            return attempt(fused=True)
        except ProgramError:
            # Its steps are those of the function, one by one: right, or with errors easier to read.
            return attempt(fused=False)

    def geometry(self, ranks: int | None = None) -> Geometry:
        """Return the buffers of the collective.

        Parameters
        ----------
        ranks
            How many, where the algorithm is not for one number alone.

        Raises
        ------
        InvalidArgumentError
            The algorithm is for other ranks, or takes no such shape.
        """
        name = self.function.__name__
        count = self.ranks if ranks is None else ranks
        if not isinstance(count, int):
            raise InvalidArgumentError(f"{name} is for {self._numbers}: say build(ranks=...)")
        if count not in (self.ranks if isinstance(self.ranks, tuple) else (self.ranks or count,)):
            raise InvalidArgumentError(f"{name} is for {self._numbers}, not {count}")
        chunks = self.chunks if isinstance(self.chunks, int) else self.chunks(count)
        geometry = Geometry(self.collective, count, chunks, self.root)
        roots = count if self.collective in ROOTED else 1
        if count < 1 or chunks < 1 or not 0 <= self.root < roots:
            raise InvalidArgumentError(
                f"{name} cannot have {count} ranks, {chunks} chunks and root {self.root}"
            )
        if max(geometry.size("input"), geometry.size("output")) > MOST_CHUNKS:
            raise InvalidArgumentError(f"{name} would have more than {MOST_CHUNKS} chunks a buffer")
        return geometry

    def __repr__(self) -> str:
        return f"<pccl.lang algorithm {self.function.__name__}: {self.collective}, {self._numbers}>"

    @property
    def _numbers(self) -> str:
        if self.ranks is None:
            return "any number of ranks"
        return f"{numbers_text(self.ranks)} ranks"


def algorithm(
    collective: Collective,
    *,
    ranks: int | Iterable[int] | None = None,
    chunks: int | Callable[[int], int] = 1,
    root: int = 0,
    slots: int = 2,
    protocol: Protocol = "",
) -> Callable[[Callable[..., object]], Algorithm]:
    """Return a decorator that makes an algorithm of a function, which takes a ``Program``.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
    ranks
        How many, or which numbers: ``range(2, 17)``, ``[2, 4, 8]``; None for any number, which
        ``build`` is told.
    chunks
        Of each block; or a function of the ranks.
    root
        Of broadcast, reduce, gather and scatter.
    slots
        Messages that may wait between two ranks on one channel: 1 to 64.
    protocol
        By which messages should travel between GPUs, as for ``pccl.Capsule.of``: ``"ll"``,
        ``"ll128"``, ``"direct"``; empty: as their lengths suggest.

    Raises
    ------
    InvalidArgumentError
        There is no such collective, or no such protocol; or a number of ranks is none, or is there
        twice, or there are more than 1,024.
    """
    if collective not in COLLECTIVES:
        raise InvalidArgumentError(
            f"'{collective}' is no collective; there are {', '.join(COLLECTIVES)}"
        )
    protocol = check_protocol(protocol)
    known = ranks if ranks is None or isinstance(ranks, int) else numbers_of(ranks)

    def make(function: Callable[..., object]) -> Algorithm:
        return Algorithm(function, collective, known, chunks, root, slots, protocol)

    return make

# SPDX-License-Identifier: Apache-2.0
"""Algorithms in terms of chunks: functions that copy and reduce chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pccl._internal.arguments import require
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

MOST_CHUNKS = 1 << 20  # per buffer


class Program:
    """Argument of an algorithm's function: the buffers of all ranks, in chunks.

    Attributes
    ----------
    collective
        Name of the collective that the algorithm implements.
    ranks
        Number of ranks.
    chunks
        Number of chunks per block. A block is the whole buffer of all_reduce, broadcast and reduce;
        for the other collectives it is the part of a buffer that belongs to one rank.
    root
        Root of broadcast, reduce, gather and scatter; 0 for other collectives.
    """

    def __init__(self, geometry: Geometry, trace: Trace | None = None) -> None:
        require(geometry, Geometry, "geometry", "a pccl.lang.geometry.Geometry")
        self.collective = geometry.collective
        self.ranks = geometry.ranks
        self.chunks = geometry.chunks
        self.root = geometry.root
        self._trace = trace or Trace(geometry)

    def input(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of the input of a rank.

        Parameters
        ----------
        rank
            Rank that owns the input.
        chunk, count
            First chunk, and number of chunks. In a buffer with one block per rank, chunk ``j`` of
            block ``b`` has the index ``b * chunks + j``.

        Raises
        ------
        ProgramError
            The rank does not exist, has no input, or has fewer chunks.
        """
        return self._chunks(rank, "input", chunk, count)

    def output(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of the output of a rank: their present values, or targets to copy to.

        Parameters
        ----------
        rank, chunk, count
            As for ``input``.

        Raises
        ------
        ProgramError
            The rank does not exist, has no output, or has fewer chunks.
        """
        return self._chunks(rank, "output", chunk, count)

    def scratch(self, rank: int, chunk: int = 0, count: int = 1) -> Chunks:
        """Return chunks of temporary memory that a rank has while the collective runs.

        Chunks of a block may differ in length. Therefore a chunk keeps its index modulo ``chunks``
        wherever it is copied to, scratch included.

        Parameters
        ----------
        rank, chunk, count
            As for ``input``. Scratch extends to the largest chunk that the function uses.

        Raises
        ------
        ProgramError
            The rank does not exist, or there are too many chunks.
        """
        rank = self._trace.check_rank(rank)
        if chunk < 0 or count < 1 or chunk + count > MOST_CHUNKS:
            raise ProgramError(caller(), f"scratch has no {count} chunks from {chunk} on")
        self._trace.scratch[rank] = max(self._trace.scratch[rank], chunk + count)
        return self._at(rank, "scratch", chunk, count)

    def switch_phase(self, phase: str) -> None:
        """Switch the network to another phase, after all earlier operations of all ranks.

        Later operations use the links of that phase only. Scratch does not keep its values across
        the switch.

        Parameters
        ----------
        phase
            Name of the phase in the description of the cluster.

        Raises
        ------
        ProgramError
            ``phase`` is not a valid name, or this function is a part of a composed algorithm.
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
    """A function that defines a collective on chunks; ``build`` makes a capsule of it.

    A call with a ``Program`` runs the function as a part of another algorithm.

    Attributes
    ----------
    function
        Callable that takes a ``Program`` and its own keyword parameters.
    collective
        Name of the collective that the function implements.
    ranks
        Number of ranks, or several numbers; None for any number, which ``build`` then requires.
    chunks
        Number of chunks per block, or a function that returns it for a number of ranks.
    root
        Root of broadcast, reduce, gather and scatter.
    slots
        Number of messages that may wait between two ranks on one channel.
    protocol
        Protocol of messages between GPUs, as for ``pccl.Capsule.of``.
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
        """Return the verified capsule of the algorithm.

        Parameters
        ----------
        name
            Name of the capsule; None for the name of the function.
        ranks
            Number of ranks, where the algorithm is for any number or for several. For several
            numbers, such as ``range(2, 17)`` or ``[2, 4, 8]``, the capsule contains the programs
            for each number, and a group uses those for its own number of ranks.
        instances
            Number of copies of the program that run concurrently, each on a part of each block: 1
            to 64.
        sizes, author, licence, note
            As for ``pccl.Capsule.of``.
        parameters
            Keyword arguments for the function.

        Raises
        ------
        InvalidArgumentError
            The algorithm is for other numbers of ranks, or the shape is invalid.
        ProgramError
            The algorithm is wrong. The message names the line, the steps in conflict, and the
            number of ranks where there are several.
        """
        name = self.function.__name__ if name is None else name
        about = About(name, author, licence, note, sizes, self.protocol)
        requested = self.ranks if ranks is None else ranks
        if requested is None or isinstance(requested, int):
            return self._built(requested, about, instances, parameters)
        return Capsule.join(
            self._one_of_several(number, about, instances, parameters)
            for number in numbers_of(requested)
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
            # The plain form has one step per operation of the function: it may be valid where the
            # fused form is not, and its errors are easier to read.
            return attempt(fused=False)

    def geometry(self, ranks: int | None = None) -> Geometry:
        """Return the buffers of the collective.

        Parameters
        ----------
        ranks
            Number of ranks, where the algorithm is not for one number only.

        Raises
        ------
        InvalidArgumentError
            The algorithm is for other numbers of ranks, or the shape is invalid.
        """
        name = self.function.__name__
        count = self.ranks if ranks is None else ranks
        if not isinstance(count, int):
            raise InvalidArgumentError(f"{name} is for {self._numbers}: pass build(ranks=...)")
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
    """Return a decorator that makes an algorithm of a function of a ``Program``.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
    ranks
        Number of ranks, or several numbers: ``range(2, 17)``, ``[2, 4, 8]``; None for any number,
        which ``build`` then requires.
    chunks
        Number of chunks per block, or a function that returns it for a number of ranks.
    root
        Root of broadcast, reduce, gather and scatter.
    slots
        Number of messages that may wait between two ranks on one channel: 1 to 64.
    protocol
        Protocol of messages between GPUs, as for ``pccl.Capsule.of``: ``"ll"``, ``"ll128"`` or
        ``"direct"``; empty: chosen by message length.

    Raises
    ------
    InvalidArgumentError
        The collective or the protocol does not exist, a number of ranks is invalid or occurs twice,
        or there are more than 1,024 numbers.
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

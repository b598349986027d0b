# SPDX-License-Identifier: Apache-2.0
"""Chunks in an algorithm: the values that operations copy and reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.lang.origin import ProgramError, caller

if TYPE_CHECKING:
    from pccl.lang.geometry import Atom
    from pccl.lang.trace import Trace

__all__ = ["Chunks", "join"]


class Chunks:
    """One or more chunks of one rank, with their present values.

    ``x[0]`` and ``x[2:4]`` select chunks, and ``len(x)`` is their number. After an operation has
    overwritten a chunk, an older ``Chunks`` object can no longer be read: the error names the line
    that overwrote the chunk.

    Attributes
    ----------
    rank
        Rank that has the chunks.
    """

    def __init__(
        self, trace: Trace, rank: int, atoms: tuple[Atom, ...], versions: tuple[int, ...]
    ) -> None:
        self._trace = trace
        self.rank = rank
        self._atoms = atoms
        self._versions = versions

    def copy_to(self, target: int | Chunks, *, channel: int = 0) -> Chunks:
        """Copy the chunks to another rank, or within their own rank.

        Parameters
        ----------
        target
            A rank, or as many chunks of the output or scratch of a rank. A rank stores the copies
            at their position in its output, or in scratch that is allocated for them.
        channel
            Channel of the messages: 0 or more. Messages of one channel between two ranks keep their
            order; messages of different channels do not wait for each other.

        Returns
        -------
        Chunks
            The copies.

        Raises
        ------
        ProgramError
            The chunks are empty or were overwritten, or the target cannot hold a copy of them.
        """
        self._check_readable()
        rank = self._rank_of(target)
        writes = target._writable() if isinstance(target, Chunks) else self._places_at(rank)
        return self._perform(rank, writes, None, channel)

    def reduce_to(self, target: int | Chunks, *, channel: int = 0) -> Chunks:
        """Add the chunks to the corresponding chunks of another rank, or of their own rank.

        Parameters
        ----------
        target
            A rank, or as many chunks. A rank adds the chunks to its latest values of the same
            chunks, or to its input, and stores the sums at their position in its output, or in
            scratch. Given chunks are the second operand and receive the sums, unless they are an
            input, which is never written.
        channel
            As for ``copy_to``.

        Returns
        -------
        Chunks
            The chunks that contain the sums.

        Raises
        ------
        ProgramError
            The chunks or those of the target are empty or were overwritten, or the collective has
            no reduction.
        """
        self._check_readable()
        rank = self._rank_of(target)
        if isinstance(target, Chunks):
            target._check_readable()
            operands = target._atoms
            is_input = any(atom.buffer == "input" for atom in operands)
            writes = self._places_at(rank) if is_input else operands
        else:
            homes = [self._trace.home((self.rank, atom)) for atom in self._atoms]
            operands = tuple(self._trace.operand_at(rank, home) for home in homes if home)
            writes = self._places_at(rank)
        return self._perform(rank, writes, operands, channel)

    def __getitem__(self, which: int | slice) -> Chunks:
        if isinstance(which, int):
            which = slice(which, which + 1 or None)
        atoms, versions = self._atoms[which], self._versions[which]
        if not atoms:
            raise ProgramError(caller(), f"{self} has no chunks {which}")
        return Chunks(self._trace, self.rank, atoms, versions)

    def __len__(self) -> int:
        return len(self._atoms)

    def __repr__(self) -> str:
        names = [f"{atom.buffer}[{atom.chunk}]" for atom in self._atoms[:4]]
        more = ", ..." if len(self._atoms) > len(names) else ""
        return f"<{', '.join(names)}{more} of rank {self.rank}>"

    def _rank_of(self, target: int | Chunks) -> int:
        if not isinstance(target, Chunks):
            return self._trace.check_rank(target)
        if target._trace is not self._trace:
            raise ProgramError(caller(), "these chunks are of another program")
        if len(target) != len(self):
            raise ProgramError(caller(), f"{len(self)} chunks do not fit {len(target)}")
        return target.rank

    def _check_readable(self) -> None:
        for atom, version in zip(self._atoms, self._versions, strict=True):
            self._trace.check_read((self.rank, atom), version)

    def _writable(self) -> tuple[Atom, ...]:
        if any(atom.buffer == "input" for atom in self._atoms):
            raise ProgramError(caller(), "input belongs to the caller, and must stay as it is")
        return self._atoms

    def _places_at(self, rank: int) -> tuple[Atom, ...]:
        homes = [self._trace.home((self.rank, atom)) for atom in self._atoms]
        return tuple(self._trace.place_at(rank, home) for home in homes if home)

    def _perform(
        self,
        rank: int,
        writes: tuple[Atom, ...],
        operands: tuple[Atom, ...] | None,
        channel: int,
    ) -> Chunks:
        if not isinstance(channel, int) or channel < 0:
            raise ProgramError(caller(), f"{channel!r} is no channel; channels are 0, 1, 2, ...")
        if len(set(writes)) != len(writes):
            raise ProgramError(caller(), "two chunks would come to one place")
        self._trace.add(self.rank, self._atoms, rank, writes, operands=operands, channel=channel)
        versions = tuple(self._trace.version((rank, atom)) for atom in writes)
        return Chunks(self._trace, rank, writes, versions)


def join(*parts: Chunks) -> Chunks:
    """Return chunks of one rank as one value, so that one message carries them.

    Parameters
    ----------
    parts
        One or more values of one rank.

    Raises
    ------
    ProgramError
        The chunks belong to several ranks.
    """
    first = parts[0]
    if any(part.rank != first.rank or part._trace is not first._trace for part in parts):
        raise ProgramError(caller(), "only chunks of one rank travel in one message")
    return Chunks(
        first._trace,
        first.rank,
        tuple(atom for part in parts for atom in part._atoms),
        tuple(version for part in parts for version in part._versions),
    )

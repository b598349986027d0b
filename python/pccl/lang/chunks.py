# SPDX-License-Identifier: Apache-2.0
"""Chunks in an algorithm: what is copied, and added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl.lang.origin import ProgramError, caller

if TYPE_CHECKING:
    from pccl.lang.geometry import Atom
    from pccl.lang.trace import Trace

__all__ = ["Chunks", "join"]


class Chunks:
    """One chunk or several of one rank, with what they hold now.

    ``x[0]`` and ``x[2:4]`` are some of them, ``len(x)`` says how many there are. What holds
    something else later can no longer be read through an older value: that is an error, which names
    the line that overwrote it.

    Attributes
    ----------
    rank
        Where they are.
    """

    def __init__(
        self, trace: Trace, rank: int, atoms: tuple[Atom, ...], versions: tuple[int, ...]
    ) -> None:
        self._trace = trace
        self.rank = rank
        self._atoms = atoms
        self._versions = versions

    def copy_to(self, target: int | Chunks, *, channel: int = 0) -> Chunks:
        """Copy them to another rank, or within theirs.

        Parameters
        ----------
        target
            A rank: they come where they belong in its output, or into scratch that is found for
            them. Or as many chunks of its output or scratch.
        channel
            Messages of one channel between two ranks keep their order; those of others do not wait
            for them.

        Returns
        -------
        Chunks
            The copies.

        Raises
        ------
        ProgramError
            They hold nothing, or something else by now; or the target takes no copy of them.
        """
        self._check_readable()
        rank = self._rank_of(target)
        writes = target._writable() if isinstance(target, Chunks) else self._places_at(rank)
        return self._perform(rank, writes, None, channel)

    def reduce_to(self, target: int | Chunks, *, channel: int = 0) -> Chunks:
        """Add them to what another rank has of the same, or theirs has.

        Parameters
        ----------
        target
            A rank: they are added to what it got last of the same chunks, or to its input, and the
            sums come where they belong in its output, or into scratch. Or as many chunks, which
            they are added to: the sums come into these, but never into an input.
        channel
            As for ``copy_to``.

        Returns
        -------
        Chunks
            The sums.

        Raises
        ------
        ProgramError
            They, or the target's, hold nothing, or something else by now; or the collective adds
            nothing up.
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
    """Return chunks of one rank as one value, so that they travel in one message.

    Parameters
    ----------
    parts
        One or more.

    Raises
    ------
    ProgramError
        They are of several ranks.
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

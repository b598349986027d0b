# SPDX-License-Identifier: Apache-2.0
"""Initial and final locations of the chunks of a collective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

__all__ = ["REDUCTIONS", "Atom", "Buffer", "Collective", "Geometry", "Home", "Protocol"]

Collective: TypeAlias = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
]
# "auto" is scratch that has no number yet.
Buffer: TypeAlias = Literal["input", "output", "scratch", "auto"]

# Protocol of messages between GPUs; "" leaves the choice open.
Protocol: TypeAlias = Literal["", "ll", "ll128", "direct"]

COLLECTIVES = get_args(Collective)
PROTOCOLS = get_args(Protocol)
# These names are still accepted, with a DeprecationWarning.
FORMER_PROTOCOLS: dict[str, Protocol] = {"words": "ll", "lines": "ll128"}
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
_INPUT_AT_ROOT = ("broadcast", "scatter")
_OUTPUT_AT_ROOT = ("reduce", "gather")
_ONE_BLOCK = ("all_reduce", "reduce", "broadcast")
_BY_SOURCE = ("all_gather", "gather")
_BY_TARGET = ("reduce_scatter", "scatter")


class Atom(NamedTuple):
    """One chunk of a buffer of a rank."""

    buffer: Buffer
    chunk: int


class Home(NamedTuple):
    """Identity of a chunk, independent of its location: a block, and the index within the block.

    The blocks are those of the buffer that has one block per rank. An all_to_all has n x n blocks:
    one for each pair of source and target.
    """

    block: int
    chunk: int


@dataclass(frozen=True)
class Geometry:
    """Buffers of a collective, in chunks.

    Attributes
    ----------
    chunks
        Number of chunks per block.
    """

    collective: Collective
    ranks: int
    chunks: int
    root: int

    def size(self, buffer: Buffer) -> int:
        """Return the number of chunks of the input or output of a rank."""
        many = ("reduce_scatter", "scatter", "all_to_all")
        if buffer == "output":
            many = ("all_gather", "gather", "all_to_all")
        return self.chunks * (self.ranks if self.collective in many else 1)

    def exists(self, rank: int, buffer: Buffer) -> bool:
        """Return whether a rank has the buffer: some collectives have it at the root only."""
        at_root = _INPUT_AT_ROOT if buffer == "input" else _OUTPUT_AT_ROOT
        return rank == self.root or self.collective not in at_root

    def home_of_input(self, rank: int, index: int) -> Home:
        """Return the identity of an input chunk."""
        block, chunk = divmod(index, self.chunks)
        if self.collective in _BY_SOURCE:
            return Home(rank, chunk)
        if self.collective == "all_to_all":
            return Home(rank * self.ranks + block, chunk)
        return Home(block, chunk)

    def home_of_output(self, rank: int, index: int) -> Home:
        """Return the identity of the result in an output chunk."""
        block, chunk = divmod(index, self.chunks)
        if self.collective in _BY_TARGET:
            return Home(rank, chunk)
        if self.collective == "all_to_all":
            return Home(block * self.ranks + rank, chunk)
        return Home(block, chunk)

    def output_of(self, home: Home, rank: int) -> Atom | None:
        """Return the output chunk for it on a rank; None where that rank does not receive it."""
        if not self.exists(rank, "output"):
            return None
        block, chunk = home
        if self.collective in _BY_TARGET:
            return Atom("output", chunk) if block == rank else None
        if self.collective == "all_to_all":
            source, target = divmod(block, self.ranks)
            return Atom("output", source * self.chunks + chunk) if target == rank else None
        return Atom("output", block * self.chunks + chunk)

    def input_of(self, home: Home) -> Atom | None:
        """Return the input chunk that a rank adds to it; None without a reduction."""
        if self.collective not in REDUCTIONS:
            return None
        return Atom("input", home.block * self.chunks + home.chunk)

    def in_place(self, rank: int, atom: Atom) -> Atom:
        """Return the canonical chunk of a memory location that input and output share in place."""
        own = rank * self.chunks
        if atom.buffer == "input" and self.collective in _ONE_BLOCK:
            return Atom("output", atom.chunk)
        if atom.buffer == "input" and self.collective in _BY_SOURCE:
            return Atom("output", own + atom.chunk)
        if atom.buffer == "output" and self.collective in _BY_TARGET:
            return Atom("input", own + atom.chunk)
        return atom

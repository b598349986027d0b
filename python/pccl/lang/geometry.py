# SPDX-License-Identifier: Apache-2.0
"""Where the chunks of a collective begin, and where they belong."""

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
# "auto" is scratch that nobody has numbered yet.
Buffer: TypeAlias = Literal["input", "output", "scratch", "auto"]

# Of messages between GPUs; "" is none in particular.
Protocol: TypeAlias = Literal["", "ll", "ll128", "direct"]

COLLECTIVES = get_args(Collective)
PROTOCOLS = get_args(Protocol)
# Still taken, with a DeprecationWarning.
FORMER_PROTOCOLS: dict[str, Protocol] = {"words": "ll", "lines": "ll128"}
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
_INPUT_AT_ROOT = ("broadcast", "scatter")
_OUTPUT_AT_ROOT = ("reduce", "gather")
_ONE_BLOCK = ("all_reduce", "reduce", "broadcast")
_BY_SOURCE = ("all_gather", "gather")
_BY_TARGET = ("reduce_scatter", "scatter")


class Atom(NamedTuple):
    """One chunk of a buffer of some rank."""

    buffer: Buffer
    chunk: int


class Home(NamedTuple):
    """What a chunk is a part of, wherever it lies: a block, and which chunk of it.

    Blocks are those of the buffer that has one for each rank; of all_to_all, n x n: of source and
    target.
    """

    block: int
    chunk: int


@dataclass(frozen=True)
class Geometry:
    """The buffers of a collective, in chunks.

    Attributes
    ----------
    chunks
        Of each block.
    """

    collective: Collective
    ranks: int
    chunks: int
    root: int

    def size(self, buffer: Buffer) -> int:
        """Return the chunks of the input or output of a rank."""
        many = ("reduce_scatter", "scatter", "all_to_all")
        if buffer == "output":
            many = ("all_gather", "gather", "all_to_all")
        return self.chunks * (self.ranks if self.collective in many else 1)

    def exists(self, rank: int, buffer: Buffer) -> bool:
        """Tell whether a rank has its input or output: some have them at the root alone."""
        at_root = _INPUT_AT_ROOT if buffer == "input" else _OUTPUT_AT_ROOT
        return rank == self.root or self.collective not in at_root

    def home_of_input(self, rank: int, index: int) -> Home:
        """Return what an input chunk is a part of."""
        block, chunk = divmod(index, self.chunks)
        if self.collective in _BY_SOURCE:
            return Home(rank, chunk)
        if self.collective == "all_to_all":
            return Home(rank * self.ranks + block, chunk)
        return Home(block, chunk)

    def home_of_output(self, rank: int, index: int) -> Home:
        """Return what belongs into an output chunk."""
        block, chunk = divmod(index, self.chunks)
        if self.collective in _BY_TARGET:
            return Home(rank, chunk)
        if self.collective == "all_to_all":
            return Home(block * self.ranks + rank, chunk)
        return Home(block, chunk)

    def output_of(self, home: Home, rank: int) -> Atom | None:
        """Return where it belongs at a rank; None where that rank does not get it."""
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
        """Return what a rank adds to it; None where nothing is reduced."""
        if self.collective not in REDUCTIONS:
            return None
        return Atom("input", home.block * self.chunks + home.chunk)

    def in_place(self, rank: int, atom: Atom) -> Atom:
        """Return the chunk that is the same memory where input and output are: one for both."""
        own = rank * self.chunks
        if atom.buffer == "input" and self.collective in _ONE_BLOCK:
            return Atom("output", atom.chunk)
        if atom.buffer == "input" and self.collective in _BY_SOURCE:
            return Atom("output", own + atom.chunk)
        if atom.buffer == "output" and self.collective in _BY_TARGET:
            return Atom("input", own + atom.chunk)
        return atom

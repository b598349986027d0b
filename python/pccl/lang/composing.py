# SPDX-License-Identifier: Apache-2.0
"""Hierarchical algorithms: one algorithm inside hosts, and one across hosts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pccl._internal.arguments import require_int
from pccl.errors import InvalidArgumentError
from pccl.lang.algorithm import Algorithm, Program
from pccl.lang.geometry import ROOTED, Atom, Geometry, Home
from pccl.lang.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pccl.lang.geometry import Collective
    from pccl.lang.part import Held

__all__ = ["compose"]

# The algorithms that a collective requires inside hosts, in order; None is the one across hosts.
STAGES: dict[Collective, tuple[Collective | None, ...]] = {
    "all_reduce": ("reduce_scatter", None, "all_gather"),
    "all_gather": (None, "all_gather"),
    "reduce_scatter": ("reduce_scatter", None),
    "broadcast": (None, "broadcast"),
    "reduce": ("reduce", None),
}


def compose(
    *, inside: Algorithm | Sequence[Algorithm], across: Algorithm, ranks_per_host: int
) -> Algorithm:
    """Return an algorithm that runs one algorithm inside hosts and another across hosts.

    The result implements the collective of ``across``. The ranks of a host are consecutive. Across
    hosts, one program per rank of a host runs concurrently, each between the ranks of one index and
    on its part of the data: no byte leaves a host twice. For broadcast and reduce, one program runs
    between the roots.

    Parameters
    ----------
    inside
        Algorithm or algorithms for ``ranks_per_host`` ranks. An all_reduce requires two: a
        reduce_scatter, which runs before ``across``, and an all_gather, which runs after it. Any
        other collective requires one algorithm of the same collective as ``across``: reduce_scatter
        and reduce run before it, all_gather and broadcast after it. ``from_generator`` without a
        number of ranks returns a built-in algorithm.
    across
        Algorithm for as many ranks as there are hosts: all_reduce, all_gather, reduce_scatter,
        broadcast or reduce.
    ranks_per_host
        Number of ranks per host: 2 or more.

    Returns
    -------
    Algorithm
        Algorithm for any number of hosts that ``across`` supports; ``build(ranks=...)`` verifies it
        as a whole. Its protocol is the protocol of ``across``. Its root, if any, is the root of
        ``inside`` on the host that is the root of ``across``.

    Raises
    ------
    InvalidArgumentError
        The algorithms do not fit together.
    """
    require_int(ranks_per_host, "ranks_per_host")
    if ranks_per_host < 2:
        raise InvalidArgumentError(f"ranks_per_host is {ranks_per_host}; it must be 2 or more")
    within = [inside] if isinstance(inside, Algorithm) else list(inside)
    for each in (*within, across):
        if not isinstance(each, Algorithm):
            raise InvalidArgumentError(
                f"{each!r} is no algorithm: of a built-in one, give what from_generator returns "
                "without a number of ranks"
            )
    parts = _Parts(across.collective, ranks_per_host, _stages(within, across))
    root = across.root * ranks_per_host + within[0].root
    slots = max(each.slots for each in (*within, across))

    def composed(program: Program) -> None:
        parts.run(program)

    return Algorithm(
        composed,
        across.collective,
        None,
        parts.chunks,
        root if across.collective in ROOTED else 0,
        slots,
        across.protocol,
    )


class _Stage(NamedTuple):
    algorithm: Algorithm
    is_inside: bool


def _stages(inside: list[Algorithm], across: Algorithm) -> list[_Stage]:
    """Return the algorithms in execution order."""
    wanted = STAGES.get(across.collective)
    if wanted is None:
        raise InvalidArgumentError(
            f"{across.collective} is not composed; there are {', '.join(STAGES)}"
        )
    if [each.collective for each in inside] != [name for name in wanted if name]:
        raise InvalidArgumentError(
            f"{across.collective} across hosts needs {' and '.join(filter(None, wanted))} inside "
            f"them, not {' and '.join(each.collective for each in inside) or 'nothing'}"
        )
    given = iter(inside)
    return [_Stage(next(given), True) if name else _Stage(across, False) for name in wanted]


@dataclass(frozen=True)
class _Parts:
    """Stages of a composed algorithm, with the ranks and data of each of their parts."""

    collective: Collective
    each: int  # ranks per host
    stages: list[_Stage]

    def chunks(self, ranks: int) -> int:
        """Return the least number of chunks per block that every stage can divide."""
        hosts = self._hosts(ranks)
        coarsest = Geometry(self.collective, ranks, self._unit, 0)
        least = 1
        for stage in self.stages:
            own = stage.algorithm.geometry(self.each if stage.is_inside else hosts).chunks
            length = len(self._blocks(coarsest, stage, 0)(0))
            least = math.lcm(least, own // math.gcd(own, length))
        return least * self._unit

    def run(self, program: Program) -> None:
        """Record all stages; each stage starts from the results of the previous stage."""
        trace = program._trace
        held = dict(_inputs(trace.geometry))
        for stage in self.stages:
            is_last = stage is self.stages[-1]
            held = {
                place: atom
                for ranks, geometry, blocks in self._groups(trace.geometry, stage)
                for place, atom in _run_part(
                    stage.algorithm,
                    Part(trace, geometry, ranks, blocks, held, into_output=is_last),
                )
            }

    @property
    def _unit(self) -> int:
        """Number of parts of a block among the ranks of a host."""
        return self.each if self.collective == "all_reduce" else 1

    def _hosts(self, ranks: int) -> int:
        if ranks % self.each or ranks < 2 * self.each:
            raise InvalidArgumentError(
                f"{ranks} ranks are no two or more hosts of {self.each} ranks each"
            )
        return ranks // self.each

    def _groups(
        self, whole: Geometry, stage: _Stage
    ) -> Iterator[tuple[list[int], Geometry, Callable[[int], list[Home]]]]:
        """Yield the ranks of each part of a stage, their buffers, and their map of blocks."""
        hosts = self._hosts(whole.ranks)
        if stage.is_inside:
            for host in range(hosts):
                ranks = [host * self.each + index for index in range(self.each)]
                yield ranks, stage.algorithm.geometry(self.each), self._blocks(whole, stage, 0)
            return
        is_rooted = self.collective in ROOTED
        for index in [whole.root % self.each] if is_rooted else range(self.each):
            ranks = [host * self.each + index for host in range(hosts)]
            yield ranks, stage.algorithm.geometry(hosts), self._blocks(whole, stage, index)

    def _blocks(self, whole: Geometry, stage: _Stage, index: int) -> Callable[[int], list[Home]]:
        """Return a function that maps a block of a stage's part to chunks of the whole."""
        hosts = whole.ranks // self.each
        chunks = range(whole.chunks)
        if self.collective in ROOTED:
            return lambda _: [Home(0, chunk) for chunk in chunks]
        if self.collective == "all_reduce":
            length = whole.chunks // self.each
            return lambda block: [
                Home(0, (block if stage.is_inside else index) * length + chunk)
                for chunk in range(length)
            ]
        if stage.is_inside:
            return lambda block: [
                Home(host * self.each + block, chunk) for host in range(hosts) for chunk in chunks
            ]
        return lambda block: [Home(block * self.each + index, chunk) for chunk in chunks]


def _inputs(geometry: Geometry) -> Iterator[tuple[Held, Atom]]:
    """Yield the location of each input of each rank."""
    for rank in range(geometry.ranks):
        if geometry.exists(rank, "input"):
            for index in range(geometry.size("input")):
                yield (rank, geometry.home_of_input(rank, index)), Atom("input", index)


def _run_part(algorithm: Algorithm, part: Part) -> Iterator[tuple[Held, Atom]]:
    algorithm(Program(part.geometry, part))
    return part.results()

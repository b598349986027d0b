# SPDX-License-Identifier: Apache-2.0
"""Built-in algorithms, as capsules and as parts of composed algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

from pccl import _core
from pccl._internal.arguments import require_int
from pccl.capsule import Capsule
from pccl.lang.algorithm import Algorithm
from pccl.lang.building import check_protocol
from pccl.lang.replaying import replayed

if TYPE_CHECKING:
    from pccl._core import Schedule
    from pccl.lang.algorithm import Program
    from pccl.lang.geometry import Collective, Protocol

__all__ = ["from_generator"]


@overload
def from_generator(
    algorithm: str,
    collective: Collective,
    ranks: int,
    *,
    name: str | None = None,
    root: int = 0,
    chunks: int | None = None,
    slots: int | None = None,
    sizes: str = "..",
    protocol: Protocol = "",
) -> Capsule: ...
@overload
def from_generator(
    algorithm: str,
    collective: Collective,
    *,
    root: int = 0,
    chunks: int | None = None,
    slots: int | None = None,
    protocol: Protocol = "",
) -> Algorithm: ...
def from_generator(
    algorithm: str,
    collective: Collective,
    ranks: int | None = None,
    *,
    name: str | None = None,
    root: int = 0,
    chunks: int | None = None,
    slots: int | None = None,
    sizes: str = "..",
    protocol: Protocol = "",
) -> Capsule | Algorithm:
    """Return a built-in algorithm as a capsule, or as an algorithm for any number of ranks.

    ``print(from_generator(...).schedule)`` shows the steps of a capsule. An algorithm for any
    number of ranks can be a part of others: ``compose`` accepts it, and so does a function of a
    ``Program``. It expresses the steps in terms of chunks, and building it may result in different
    steps with the same effect.

    Parameters
    ----------
    algorithm, collective, root, chunks, slots
        As for ``pccl.schedule.generate``.
    ranks
        As for ``pccl.schedule.generate``; None to return an algorithm.
    name
        Name of the capsule; None for the name of the algorithm and the number of ranks, such as
        ``"pat8"``, because each group already has an algorithm of the plain name.
    sizes
        As for ``pccl.capsule.load_capsule``. For an algorithm, pass ``name`` and ``sizes`` to
        ``build``.
    protocol
        As for ``pccl.Capsule.of``.

    Raises
    ------
    InvalidArgumentError
        The algorithm, collective or protocol does not exist, or the shape is invalid.
    """
    for value, argument in ((ranks, "ranks"), (root, "root"), (chunks, "chunks"), (slots, "slots")):
        if value is not None:
            require_int(value, argument)
    protocol = check_protocol(protocol)
    generator = _Generator(algorithm, collective, root, chunks, slots)
    if ranks is None:
        return generator.algorithm(protocol)
    made = generator.schedule(ranks).renamed(f"{algorithm}{ranks}" if name is None else name)
    return Capsule.of(made, sizes=sizes, protocol=protocol)


class _Generator(NamedTuple):
    """Built-in generator, for any number of ranks."""

    name: str
    collective: Collective
    root: int
    chunks: int | None
    slots: int | None

    def schedule(self, ranks: int) -> Schedule:
        return _core.generate(
            self.name,
            self.collective,
            ranks,
            root=self.root,
            chunks=self.chunks,
            slots=self.slots,
        )

    def algorithm(self, protocol: Protocol) -> Algorithm:
        def generated(program: Program) -> None:
            made = self._replace(chunks=program.chunks, root=program.root)
            replayed(made.schedule(program.ranks), program._trace)

        generated.__name__ = f"generated_{self.name}"
        return Algorithm(
            generated,
            self.collective,
            None,
            lambda ranks: self.schedule(ranks).chunks,
            self.root,
            self.schedule(max(2, self.root + 1)).slots,
            protocol,
        )

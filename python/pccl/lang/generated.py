"""The built-in algorithms as capsules: to read, to change, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pccl import _core
from pccl.capsule import Capsule

if TYPE_CHECKING:
    from pccl.lang.geometry import Collective, Protocol

__all__ = ["from_generator"]


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
) -> Capsule:
    """Return a capsule of what a built-in generator makes.

    ``print(from_generator(...).schedule)`` shows its steps.

    Parameters
    ----------
    algorithm, collective, ranks, root, chunks, slots
        As for ``pccl.schedule.generate``.
    name
        The capsule's; None for the algorithm's and the number of ranks, ``"pat8"``: a group has
        one of the algorithm's name already.
    sizes
        As for ``pccl.load_capsule``.
    protocol
        As for ``pccl.Capsule.of``.

    Raises
    ------
    InvalidArgumentError
        There is no such algorithm, collective or protocol, or it takes no such shape.
    """
    made = _core.generate(algorithm, collective, ranks, root=root, chunks=chunks, slots=slots)
    made = made.renamed(name or f"{algorithm}{ranks}")
    return Capsule.of(made, sizes=sizes, protocol=protocol)

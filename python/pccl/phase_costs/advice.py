# SPDX-License-Identifier: Apache-2.0
"""Advice on switching circuits: the time of operations on the ring, and on own circuits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pccl._internal.time_limits import duration_of
from pccl.phase_costs import circuits
from pccl.results.table import Table, html_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.results.table import Fields

__all__ = ["Advice", "Cost", "Operation", "advise"]


@dataclasses.dataclass(frozen=True)
class Operation:
    """``all_reduce`` in groups, or ``all_to_all`` of all ranks.

    ``nbytes`` is the number of bytes per rank. Groups have ``size`` ranks (None: all) at a distance
    of ``stride``; ``times`` is the number of runs before circuits change again.
    """

    kind: str
    nbytes: int
    size: int | None = None
    stride: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        if self.kind not in {"all_reduce", "all_to_all"}:
            raise ValueError(f"kind must be all_reduce or all_to_all, not {self.kind}")
        if self.nbytes < 0 or self.times < 1 or self.stride < 1:
            raise ValueError("nbytes must be at least 0, times and stride at least 1")
        if self.kind == "all_to_all" and (self.size is not None or self.stride != 1):
            raise ValueError("an all_to_all is one of all ranks: leave size and stride out")


@dataclasses.dataclass(frozen=True)
class Cost:
    """Total time of all runs of an operation, in seconds.

    ``switches`` is the number of switches in each run. The single switch to the circuits of groups
    is not included.
    """

    operation: Operation
    stay: float
    switched: float
    switches: int

    def row(self) -> Fields:
        """Return the fields for a data frame."""
        return {
            **dataclasses.asdict(self.operation),
            "stay_ms": self.stay * 1e3,
            "switched_ms": self.switched * 1e3,
        }


@dataclasses.dataclass(frozen=True)
class Advice:
    """Total times in seconds; ``switched`` includes the time of switching."""

    costs: Table[Cost]
    stay: float
    switched: float

    @property
    def switch(self) -> bool:
        """Whether switching is faster."""
        return self.switched < self.stay

    def __str__(self) -> str:
        word = "switch" if self.switch else "stay"
        return (
            f"{word}: {self.stay * 1e3:.1f} ms on the ring, {self.switched * 1e3:.1f} ms switched"
        )

    def __repr__(self) -> str:
        return f"<pccl.Advice {self}>"

    def _repr_html_(self) -> str:
        return html_table(self.costs.rows, caption=str(self))


def advise(
    operations: Sequence[Operation], on: circuits.Circuits, *, reconfiguration: float
) -> Advice:
    """Compare staying on the ring with switching circuits, by the model of ``pccl.phase_costs``.

    Parameters
    ----------
    operations
        Operations that run next.
    on
        Circuits of the ranks.
    reconfiguration
        Seconds that one switch takes, with control, settling and the restart of ranks.

    Returns
    -------
    Advice
        Total times, and the times of each operation.

    Raises
    ------
    ValueError
        A group does not fit on the ring, or ``reconfiguration`` is negative or infinite.

    Examples
    --------
    >>> links = pccl.phase_costs.Circuits(ranks=64, bandwidth=12.5e9)
    >>> groups = pccl.phase_costs.Operation("all_reduce", 256 << 20, size=8, stride=8)
    >>> pccl.phase_costs.advise([groups], links, reconfiguration=25e-3)
    <pccl.Advice switch: 300.8 ms on the ring, 62.7 ms switched>
    """
    duration_of(reconfiguration, "reconfiguration")
    costs = Table(_cost_of(operation, on, reconfiguration) for operation in operations)
    has_groups = any(cost.operation.kind == "all_reduce" for cost in costs)
    return Advice(
        costs=costs,
        stay=sum(cost.stay for cost in costs),
        switched=sum(cost.switched for cost in costs) + (reconfiguration if has_groups else 0.0),
    )


def _cost_of(operation: Operation, on: circuits.Circuits, reconfiguration: float) -> Cost:
    if operation.kind == "all_to_all":
        stay = circuits.all_to_all_on_ring(on, operation.nbytes)
        switched = circuits.all_to_all_rotating(on, operation.nbytes, reconfiguration)
        switches = on.ranks - 1
    else:
        size = on.ranks if operation.size is None else operation.size
        if not 1 < size * operation.stride <= on.ranks:
            raise ValueError(f"{size} ranks {operation.stride} apart are no group of {on.ranks}")
        stride = operation.stride
        stay = circuits.group_on_ring(on, operation.nbytes, size=size, stride=stride)
        switched = circuits.group_switched(on, operation.nbytes, size=size)
        switches = 0
    times = operation.times
    return Cost(operation, times * stay, times * switched, switches)

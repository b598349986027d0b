# SPDX-License-Identifier: Apache-2.0
"""Cost model of collectives on circuits; the docstring of the package states it."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pccl._internal.arguments import require, require_int
from pccl._internal.time_limits import duration_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "Circuits",
    "PairedStep",
    "WithSwitches",
    "all_to_all_on_ring",
    "all_to_all_rotating",
    "break_even",
    "group_on_ring",
    "group_switched",
    "halving_doubling_on_ring",
    "halving_doubling_switched",
    "least_switched",
    "ring_all_reduce",
    "swing_on_ring",
]


class WithSwitches(NamedTuple):
    """Cost of a collective that switches circuits between its steps.

    Attributes
    ----------
    seconds
        Total time.
    switches
        Number of switches of circuits.
    """

    seconds: float
    switches: int


@dataclasses.dataclass(frozen=True)
class Circuits:
    """Links of ranks in the model.

    Attributes
    ----------
    ranks
        Number of ranks: 2 or more.
    bandwidth
        Bytes per second of a port.
    alpha
        Seconds per step, independent of its bytes.
    delta
        Seconds per hop.
    ports
        Ports per rank: 1 or 2.
    """

    ranks: int
    bandwidth: float
    alpha: float = 5e-6
    delta: float = 1e-6
    ports: int = 1

    def __post_init__(self) -> None:
        require_int(self.ranks, "ranks")
        require_int(self.ports, "ports")
        require(self.bandwidth, numbers.Real, "bandwidth", "bytes a second")
        if self.ranks < 2 or self.ports not in {1, 2}:
            raise ValueError("there must be at least 2 ranks, with 1 or 2 ports each")
        if not 0 < self.bandwidth < math.inf:
            raise ValueError(f"bandwidth is {self.bandwidth}: give bytes a second above 0")
        duration_of(self.alpha, "alpha")
        duration_of(self.delta, "delta")

    def step(self, nbytes: float, *, hops: int = 1) -> float:
        """Return the seconds of a step over some links of one port.

        Parameters
        ----------
        nbytes
            Bytes on the busiest link.
        hops
            Number of links that a message crosses.
        """
        return self.alpha + hops * self.delta + nbytes / self.bandwidth

    def over_a_circuit(self, nbytes: float) -> float:
        """Return the seconds of a step over a circuit that uses all ports.

        Parameters
        ----------
        nbytes
            Bytes of each message.
        """
        return self.step(nbytes / self.ports)


_Model = TypeVar("_Model", bound="Callable[..., Any]")


def takes_circuits(model: _Model) -> _Model:
    """Decorate a function to raise TypeError where ``on`` is not a ``Circuits``."""

    @functools.wraps(model)
    def checked(on: Circuits, *given: Any, **named: Any) -> Any:
        require(on, Circuits, "on", "a pccl.phase_costs.Circuits")
        return model(on, *given, **named)

    return cast("_Model", checked)


@takes_circuits
def ring_all_reduce(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_reduce on the ring, in both directions with two ports.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.
    """
    return 2 * (on.ranks - 1) * on.over_a_circuit(nbytes / on.ranks)


@functools.cache
def _ring_load(partners: tuple[int, ...], ports: int) -> tuple[int, int]:
    """Return the maximum of hops and of flows per link if each rank sends to its partner."""
    ranks = len(partners)
    onwards, backwards = [0] * ranks, [0] * ranks
    most_hops = 0
    for rank, partner in enumerate(partners):
        ahead = (partner - rank) % ranks
        goes_back = ports == 2 and ahead > ranks - ahead
        hops = ranks - ahead if goes_back else ahead
        most_hops = max(most_hops, hops)
        for hop in range(hops):
            if goes_back:
                backwards[(rank - hop) % ranks] += 1
            else:
                onwards[(rank + hop) % ranks] += 1
    return most_hops, max(onwards + backwards)


def _log2(ranks: int) -> int:
    if ranks & (ranks - 1):
        raise ValueError(f"halving and doubling needs a power of 2, not {ranks} ranks")
    return ranks.bit_length() - 1


def _halving(on: Circuits, nbytes: float) -> list[tuple[tuple[int, ...], float]]:
    """Return partners and bytes of each step: reduce_scatter, then all_gather in reverse order."""
    there = [
        (tuple(rank ^ (1 << level) for rank in range(on.ranks)), nbytes / 2 ** (level + 1))
        for level in range(_log2(on.ranks))
    ]
    return there + there[::-1]


def _swing(on: Circuits, nbytes: float) -> list[tuple[tuple[int, ...], float]]:
    """Return the steps with partners of "Swing" (NSDI 2024): even ranks ahead, odd ranks back."""
    there = []
    for level in range(_log2(on.ranks)):
        distance = sum((-2) ** power for power in range(level + 1))
        partners = tuple(
            (rank + (distance if rank % 2 == 0 else -distance)) % on.ranks
            for rank in range(on.ranks)
        )
        there.append((partners, nbytes / 2 ** (level + 1)))
    return there + there[::-1]


def _forwarded(on: Circuits, partners: tuple[int, ...], nbytes: float) -> float:
    hops, flows = _ring_load(partners, on.ports)
    return on.step(flows * nbytes, hops=hops)


@takes_circuits
def halving_doubling_on_ring(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_reduce by halving and doubling, forwarded over the ring.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.

    Raises
    ------
    ValueError
        The number of ranks is not a power of two.
    """
    return sum(_forwarded(on, *step) for step in _halving(on, nbytes))


@takes_circuits
def swing_on_ring(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_reduce by Swing, forwarded over the ring.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.

    Raises
    ------
    ValueError
        The number of ranks is not a power of two.
    """
    return sum(_forwarded(on, *step) for step in _swing(on, nbytes))


@takes_circuits
def halving_doubling_switched(on: Circuits, nbytes: float, reconfiguration: float) -> WithSwitches:
    """Return the least seconds of an all_reduce by halving and doubling, and its switches.

    Before each step circuits may be switched to its pairs, or back to the ring; dynamic programming
    finds the best choice.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.
    reconfiguration
        Seconds that a switch of circuits takes.

    Raises
    ------
    ValueError
        The number of ranks is not a power of two.
    """
    return least_switched(
        [
            PairedStep(partners, _forwarded(on, partners, size), on.over_a_circuit(size))
            for partners, size in _halving(on, nbytes)
        ],
        reconfiguration,
    )


class PairedStep(NamedTuple):
    """Step of an algorithm between pairs of ranks.

    Attributes
    ----------
    partners
        Partner of each rank.
    on_ring
        Seconds on the ring.
    on_circuits
        Seconds on circuits between the partners.
    """

    partners: tuple[int, ...]
    on_ring: float
    on_circuits: float


def least_switched(steps: Sequence[PairedStep], reconfiguration: float) -> WithSwitches:
    """Return the least seconds of steps that begin on a ring, and the number of switches.

    Parameters
    ----------
    steps
        Steps in order.
    reconfiguration
        Seconds that a switch of circuits takes.

    Raises
    ------
    ValueError
        ``reconfiguration`` is negative, infinite or NaN.
    """
    duration_of(reconfiguration, "reconfiguration")
    ring: tuple[int, ...] = ()
    best = {ring: WithSwitches(0.0, 0)}
    for partners, on_ring, on_circuits in steps:
        costs = {ring: on_ring, partners: on_circuits}
        best = {
            circuits: _cheapest(best, circuits, cost, reconfiguration)
            for circuits, cost in costs.items()
        }
    return min(best.values())


def _cheapest(
    best: dict[tuple[int, ...], WithSwitches],
    circuits: tuple[int, ...],
    cost: float,
    reconfiguration: float,
) -> WithSwitches:
    """Return the least total cost of a step that runs on ``circuits`` with the given ``cost``."""
    seconds, switches = min(
        (seconds + (reconfiguration if before != circuits else 0), switches + (before != circuits))
        for before, (seconds, switches) in best.items()
    )
    return WithSwitches(seconds + cost, switches)


@takes_circuits
def break_even(on: Circuits) -> float:
    """Return the reconfiguration time, in seconds, below which halving and doubling beats the ring.

    The result is independent of the number of bytes.

    Parameters
    ----------
    on
        The circuits.

    Raises
    ------
    ValueError
        The number of ranks is not a power of two.
    """
    levels = _log2(on.ranks)
    return (on.alpha + on.delta) * 2 * (on.ranks - 1 - levels) / (2 * levels - 1)


@takes_circuits
def all_to_all_on_ring(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_to_all that is forwarded over the ring.

    The busiest link limits the time.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank, for all ranks together.
    """
    block = nbytes / on.ranks
    if on.ports == 1:
        flows: float = on.ranks * (on.ranks - 1) / 2
        return (on.ranks - 1) * (on.alpha + on.delta) + flows * block / on.bandwidth
    flows = on.ranks**2 / 8
    return (on.ranks - 1) * on.alpha + on.ranks // 2 * on.delta + flows * block / on.bandwidth


@takes_circuits
def all_to_all_rotating(on: Circuits, nbytes: float, reconfiguration: float) -> float:
    """Return the seconds of an all_to_all that switches circuits before each step.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank, for all ranks together.
    reconfiguration
        Seconds that a switch of circuits takes.
    """
    return (on.ranks - 1) * (reconfiguration + on.over_a_circuit(nbytes / on.ranks))


@takes_circuits
def group_on_ring(on: Circuits, nbytes: float, *, size: int, stride: int) -> float:
    """Return the seconds of an all_reduce in groups of ``size`` ranks at distance ``stride``.

    All groups run at once and send over the ring of all ranks, in one direction.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.
    size, stride
        Ranks per group, and their distance on the ring.
    """
    return 2 * (size - 1) * on.step(stride * nbytes / size, hops=stride)


@takes_circuits
def group_switched(on: Circuits, nbytes: float, *, size: int) -> float:
    """Return the seconds of an all_reduce in groups with own rings of circuits, without switching.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Bytes of the buffer of each rank.
    size
        Ranks per group.
    """
    return 2 * (size - 1) * on.step(nbytes / size)

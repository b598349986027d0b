# SPDX-License-Identifier: Apache-2.0
"""What collectives cost on circuits, and when switching these pays.

Each rank has one transmitter and one receiver for each port; without switching, circuits form a
ring, and messages to ranks further away are forwarded over it. A step in which the busiest link
carries ``bytes`` costs

    alpha + hops * delta + bytes / bandwidth

and changing the circuits before a step ``reconfiguration`` seconds more. That is the model of the
literature on photonic collectives: "When Light Bends" (arXiv 2510.08072) and "Short-circuiting
Rings" (arXiv 2510.03491). With one port for each rank the ring goes one way; with two it goes both
ways, and a circuit between two ranks has the bandwidth of both ports.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pccl.arguments import require, require_int
from pccl.time_limits import duration_of

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


def __dir__() -> list[str]:
    return sorted(__all__)


class WithSwitches(NamedTuple):
    """What a collective takes that changes circuits as it goes.

    Attributes
    ----------
    seconds
        In all.
    switches
        How often circuits are changed.
    """

    seconds: float
    switches: int


@dataclasses.dataclass(frozen=True)
class Circuits:
    """The links of ranks, as the model sees them.

    Attributes
    ----------
    ranks
        2 or more.
    bandwidth
        Of a port, in bytes a second.
    alpha
        Seconds that a step takes, whatever it carries.
    delta
        Seconds of each hop.
    ports
        1 or 2 for each rank.
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
            On the busiest link.
        hops
            Links that a message crosses.
        """
        return self.alpha + hops * self.delta + nbytes / self.bandwidth

    def over_a_circuit(self, nbytes: float) -> float:
        """Return the seconds of a step over a circuit that uses all ports.

        Parameters
        ----------
        nbytes
            Of each message.
        """
        return self.step(nbytes / self.ports)


_Model = TypeVar("_Model", bound="Callable[..., Any]")


def takes_circuits(model: _Model) -> _Model:
    """Have a function refuse a network of another type by name."""

    @functools.wraps(model)
    def checked(on: Circuits, *given: Any, **named: Any) -> Any:
        require(on, Circuits, "on", "a pccl.phase_costs.Circuits")
        return model(on, *given, **named)

    return cast("_Model", checked)


@takes_circuits
def ring_all_reduce(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_reduce round the ring; with two ports, both ways at once.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Of each rank's buffer.
    """
    return 2 * (on.ranks - 1) * on.over_a_circuit(nbytes / on.ranks)


@functools.cache
def _ring_load(partners: tuple[int, ...], ports: int) -> tuple[int, int]:
    """Return hops and flows on the busiest link when each rank sends to its partner."""
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
    """Return partners and bytes of each step: reduce_scatter, and back for the all_gather."""
    there = [
        (tuple(rank ^ (1 << level) for rank in range(on.ranks)), nbytes / 2 ** (level + 1))
        for level in range(_log2(on.ranks))
    ]
    return there + there[::-1]


def _swing(on: Circuits, nbytes: float) -> list[tuple[tuple[int, ...], float]]:
    """Do the same with the partners of "Swing" (NSDI 2024): even ranks ahead, odd ones back."""
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
        Of each rank's buffer.

    Raises
    ------
    ValueError
        The ranks are no power of two.
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
        Of each rank's buffer.

    Raises
    ------
    ValueError
        The ranks are no power of two.
    """
    return sum(_forwarded(on, *step) for step in _swing(on, nbytes))


@takes_circuits
def halving_doubling_switched(on: Circuits, nbytes: float, reconfiguration: float) -> WithSwitches:
    """Return the least seconds of an all_reduce by halving and doubling, and how often it switches.

    Before each step circuits may be switched to its pairs, or back to the ring; which to do is
    found by dynamic programming.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Of each rank's buffer.
    reconfiguration
        Seconds that it takes to change circuits.

    Raises
    ------
    ValueError
        The ranks are no power of two.
    """
    return least_switched(
        [
            PairedStep(partners, _forwarded(on, partners, size), on.over_a_circuit(size))
            for partners, size in _halving(on, nbytes)
        ],
        reconfiguration,
    )


class PairedStep(NamedTuple):
    """A step of an algorithm in which ranks work in pairs.

    Attributes
    ----------
    partners
        Of each rank.
    on_ring
        Seconds that it takes on the ring.
    on_circuits
        Seconds that it takes on circuits between the partners.
    """

    partners: tuple[int, ...]
    on_ring: float
    on_circuits: float


def least_switched(steps: Sequence[PairedStep], reconfiguration: float) -> WithSwitches:
    """Return the least seconds of steps that begin on a ring, and how often circuits are switched.

    Parameters
    ----------
    steps
        One after the other.
    reconfiguration
        Seconds that it takes to change circuits.

    Raises
    ------
    ValueError
        ``reconfiguration`` is negative, infinite, or no number (NaN).
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
    """Return the cheapest way to have these circuits for a step that costs so much on them."""
    seconds, switches = min(
        (seconds + (reconfiguration if before != circuits else 0), switches + (before != circuits))
        for before, (seconds, switches) in best.items()
    )
    return WithSwitches(seconds + cost, switches)


@takes_circuits
def break_even(on: Circuits) -> float:
    """Return the reconfiguration time, in seconds, below which halving and doubling beats the ring.

    It does not depend on how many bytes there are.

    Parameters
    ----------
    on
        The circuits.

    Raises
    ------
    ValueError
        The ranks are no power of two.
    """
    levels = _log2(on.ranks)
    return (on.alpha + on.delta) * 2 * (on.ranks - 1 - levels) / (2 * levels - 1)


@takes_circuits
def all_to_all_on_ring(on: Circuits, nbytes: float) -> float:
    """Return the seconds of an all_to_all that is forwarded over the ring; bytes of a rank, in all.

    The busiest link bounds it.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        That each rank sends, to all others together.
    """
    block = nbytes / on.ranks
    if on.ports == 1:
        flows: float = on.ranks * (on.ranks - 1) / 2
        return (on.ranks - 1) * (on.alpha + on.delta) + flows * block / on.bandwidth
    flows = on.ranks**2 / 8
    return (on.ranks - 1) * on.alpha + on.ranks // 2 * on.delta + flows * block / on.bandwidth


@takes_circuits
def all_to_all_rotating(on: Circuits, nbytes: float, reconfiguration: float) -> float:
    """Return the seconds of an all_to_all for which circuits are switched before each step.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        That each rank sends, to all others together.
    reconfiguration
        Seconds that it takes to change circuits.
    """
    return (on.ranks - 1) * (reconfiguration + on.over_a_circuit(nbytes / on.ranks))


@takes_circuits
def group_on_ring(on: Circuits, nbytes: float, *, size: int, stride: int) -> float:
    """Return the seconds of an all_reduce in all groups of ``size`` ranks, ``stride`` apart.

    All of them send over the ring of all ranks, one way.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Of each rank's buffer.
    size, stride
        Ranks of a group, and how far apart they are on the ring.
    """
    return 2 * (size - 1) * on.step(stride * nbytes / size, hops=stride)


@takes_circuits
def group_switched(on: Circuits, nbytes: float, *, size: int) -> float:
    """Return the seconds of the same with a ring of circuits for each group; without switching.

    Parameters
    ----------
    on
        The circuits.
    nbytes
        Of each rank's buffer.
    size
        Ranks of a group.
    """
    return 2 * (size - 1) * on.step(nbytes / size)

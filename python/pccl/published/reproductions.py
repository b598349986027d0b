# SPDX-License-Identifier: Apache-2.0
"""Published figures of algorithms, beside the simulated figures of the programs of PCCL."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pccl import phase_costs, simulator
from pccl.errors import InvalidArgumentError
from pccl.phase_costs import Circuits
from pccl.published import algorithms
from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pccl.capsule import Capsule
    from pccl.lang.geometry import Collective

__all__ = ["Claim", "Reproduction", "names", "reproduce"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# 100 Gb/s per port, 5 us per message, 1 us per hop: as in papers on photonic collectives.
BANDWIDTH = 12.5e9
SPEED = simulator.Speed(BANDWIDTH, 5e-6, 1e-6)
RECONFIGURATIONS_US = (1, 10, 100, 1000, 25000)


@dataclass(frozen=True)
class Claim:
    """One figure of a paper.

    Attributes
    ----------
    what
        Description of the figure, with ranks and bytes.
    published
        Figure of the paper, or the value of its formula.
    simulated
        Simulated figure of the program of PCCL.
    unit
        Unit of both; empty for counts.
    """

    what: str
    published: float
    simulated: float
    unit: str = ""

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)


@dataclass(frozen=True)
class Reproduction:
    """Reproduction of an algorithm of a paper.

    Attributes
    ----------
    name
        Name for ``reproduce``.
    paper
        Source of the algorithm.
    formula
        Cost formula of the paper.
    claims
        Published and simulated figures.
    capsule
        Capsule of a few ranks, for measurements on this machine; None where the algorithm needs a
        special network.
    """

    name: str
    paper: str
    formula: str
    claims: table.Table[Claim]
    capsule: Capsule | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return a heading, and a line for each claim."""
        lines = [
            f"{self.name}: {self.paper}",
            f"  {self.formula}",
            f"  {'':<58} {'published':>12} {'simulated':>12}",
        ]
        lines += [
            f"  {claim.what:<58} {_shown(claim.published):>12} {_shown(claim.simulated):>12} "
            f"{claim.unit}".rstrip()
            for claim in self.claims
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return table.html_table(self.claims.rows, caption=f"{self.paper}\n{self.formula}")


def _shown(value: float) -> str:
    return str(round(value)) if value == round(value) else f"{value:.3f}"


def names() -> list[str]:
    """Return the names of the available reproductions."""
    return list(_MAKERS)


def reproduce(name: str) -> Reproduction:
    """Return the figures of a paper beside those of the simulator.

    Parameters
    ----------
    name
        One of the names in ``names()``.

    Raises
    ------
    InvalidArgumentError
        The name does not exist.
    """
    if name not in _MAKERS:
        raise InvalidArgumentError(f"{name!r} is none of {', '.join(names())}")
    return _MAKERS[name]()


def _switch(ranks: int) -> simulator.Network:
    return simulator.Network.switch(ranks, SPEED)


def _generated(algorithm: str, collective: Collective, ranks: int) -> Capsule:
    from pccl.lang import from_generator

    return from_generator(algorithm, collective, ranks)


def _ring() -> Reproduction:
    claims = []
    for ranks, nbytes in ((8, 16 * MIB), (64, 16 * MIB), (1024, GIB)):
        found = simulator.replay("ring", "all_reduce", _switch(ranks), nbytes)
        step = 6e-6 + nbytes / ranks / BANDWIDTH
        size = f"all_reduce of {nbytes // MIB} MiB, {ranks} ranks"
        claims += [
            Claim(f"{size}: time", 2 * (ranks - 1) * step * 1e3, found.seconds * 1e3, "ms"),
            Claim(f"{size}: rounds", 2 * (ranks - 1), found.rounds),
            Claim(
                f"{size}: sent by a rank",
                2 * (ranks - 1) / ranks * nbytes / MIB,
                found.bytes_sent / ranks / MIB,
                "MiB",
            ),
        ]
    return Reproduction(
        "ring",
        "Patarasu and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69, 2009",
        "2(n-1) steps of (alpha + delta + m/(n B)); 2(n-1)/n m sent by a rank, the least possible",
        table.Table(claims),
        _generated("ring", "all_reduce", 4),
    )


def _pat() -> Reproduction:
    claims = []
    for ranks, aggregation in ((16, 0), (1024, 0), (1024, 8), (16384, 64)):
        found = simulator.replay(
            "pat", "all_gather", _switch(ranks), ranks * KIB, aggregation=aggregation
        )
        most = aggregation or ranks // 2
        messages = int(math.log2(most)) + ranks // most - 1
        blocks = f"{ranks} ranks, at most {most} blocks a message"
        claims += [
            Claim(f"{blocks}: messages of a rank", messages, found.messages // ranks),
            Claim(f"{blocks}: sent by a rank", ranks - 1, found.bytes_sent / ranks / KIB, "blocks"),
        ]
    return Reproduction(
        "pat",
        "Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter, arXiv 2506.20252, 2025",
        "log2(A) + n/A - 1 messages of a rank, n-1 blocks; log2(n) messages where A is n/2",
        table.Table(claims),
        _generated("pat", "all_gather", 4),
    )


def _swing() -> Reproduction:
    claims = []
    for ranks in (16, 64, 128):
        network = simulator.Network.ring(ranks, SPEED, ports=2)
        found = simulator.rounds("swing", "all_reduce", network, MIB)
        levels = int(math.log2(ranks))
        claims.append(Claim(f"{ranks} ranks: steps", 2 * levels, len(found)))
        for level in range(min(levels, 4)):
            distance = abs(1 - (-2) ** (level + 1)) // 3
            reached = found[level].receivers[0]
            claims.append(
                Claim(
                    f"{ranks} ranks: distance in step {level}",
                    distance,
                    min(reached, ranks - reached),
                )
            )
        sent = sum(each.nbytes for each in found) / MIB
        claims.append(Claim(f"{ranks} ranks: sent by a rank, of 1 MiB", 2 - 2 / ranks, sent, "MiB"))
    return Reproduction(
        "swing",
        "De Sensi et al., Swing: short-cutting rings for higher bandwidth allreduce, NSDI 2024",
        "2 log2(n) steps over |1 - (-2)^(s+1)|/3 ranks, 2(n-1)/n m sent by a rank",
        table.Table(claims),
        _generated("swing", "all_reduce", 4),
    )


def _all_pairs() -> Reproduction:
    claims = []
    for ranks in (4, 8, 16):
        found = algorithms.all_pairs.build("all_pairs", ranks=ranks).replay(_switch(ranks), MIB)
        claims += [
            Claim(f"{ranks} ranks: rounds", 2, found.rounds),
            Claim(f"{ranks} ranks: messages of a rank", 2 * (ranks - 1), found.messages / ranks),
            Claim(
                f"{ranks} ranks: sent by a rank, of 1 MiB",
                2 - 2 / ranks,
                found.bytes_sent / ranks / MIB,
                "MiB",
            ),
        ]
    return Reproduction(
        "all_pairs",
        "Cowan et al., MSCCLang: Microsoft Collective Communication Language, ASPLOS 2023",
        "All-pairs AllReduce: 2 rounds where a ring has 2(n-1), as many bytes",
        table.Table(claims),
        algorithms.all_pairs.build("all_pairs", ranks=4),
    )


def _two_step() -> Reproduction:
    claims = []
    for hosts, each in ((2, 2), (4, 4), (8, 4)):
        ranks = hosts * each
        capsule = algorithms.two_step_all_to_all.build("two_step", ranks=ranks, each=each)
        across = [
            step
            for step in capsule.schedule.steps
            if step.sends and step.sends.peer // each != step.rank // each
        ]
        network = simulator.Network.hosts(ranks, each, SPEED, SPEED)
        found = capsule.replay(network, ranks * KIB)
        claims += [
            Claim(
                f"{hosts} hosts of {each}: messages of a rank to other hosts",
                (hosts - 1),
                len(across) / ranks,
            ),
            Claim(
                f"{hosts} hosts of {each}: blocks in each of them",
                each,
                found.busiest_bytes / KIB / len(across) * hosts,
            ),
            Claim(f"{hosts} hosts of {each}: rounds", 2, found.rounds),
        ]
    return Reproduction(
        "two_step",
        "Cowan et al., MSCCLang: Microsoft Collective Communication Language, ASPLOS 2023",
        "Two-Step AllToAll: a message for each other host with the blocks of all G ranks, not G",
        table.Table(claims),
        algorithms.two_step_all_to_all.build("two_step", ranks=4, each=2),
    )


def _circuits() -> Reproduction:
    claims = []
    for ranks, ports, nbytes in (
        (64, 1, 64 * KIB),
        (64, 1, 16 * MIB),
        (64, 1, GIB),
        (64, 2, 64 * KIB),
        (64, 2, MIB),
        (64, 2, 16 * MIB),
        (128, 1, 64 * KIB),
        (128, 1, MIB),
        (128, 1, 16 * MIB),
        (128, 2, MIB),
        (128, 2, 16 * MIB),
    ):
        claims += _claims_of_circuits(Circuits(ranks, BANDWIDTH, ports=ports), nbytes)
    return Reproduction(
        "circuits",
        "When Light Bends, arXiv 2510.08072; Short-circuiting Rings, arXiv 2510.03491",
        "a step costs alpha + hops delta + flows m/B, and r more where circuits are switched; "
        "B 100 Gb/s a port, alpha 5 us, delta 1 us",
        table.Table(claims),
    )


def _claims_of_circuits(on: Circuits, nbytes: int) -> list[Claim]:
    """Return a row of the table: ring, forwarded halving and Swing, switched halving."""
    network = simulator.Network.ring(on.ranks, SPEED, ports=on.ports)
    # With two ports, a ring runs in each direction with half of the bytes.
    ring = simulator.replay("ring", "all_reduce", network, nbytes // on.ports).seconds
    halving = simulator.rounds("recursive_halving", "all_reduce", network, nbytes)
    swing = simulator.rounds("swing", "all_reduce", network, nbytes)
    steps = [
        phase_costs.PairedStep(each.receivers, each.seconds, on.over_a_circuit(each.nbytes))
        for each in halving
    ]
    size = f"{nbytes // KIB} KiB" if nbytes < MIB else f"{nbytes // MIB} MiB"
    row = f"{on.ranks} ranks, {on.ports} port{'s' * (on.ports - 1)}, {size}"
    claims = [
        Claim(f"{row}: ring", phase_costs.ring_all_reduce(on, nbytes) * 1e3, ring * 1e3, "ms"),
        Claim(
            f"{row}: halving, forwarded",
            phase_costs.halving_doubling_on_ring(on, nbytes) * 1e3,
            sum(each.seconds for each in halving) * 1e3,
            "ms",
        ),
        Claim(
            f"{row}: Swing, forwarded",
            phase_costs.swing_on_ring(on, nbytes) * 1e3,
            sum(each.seconds for each in swing) * 1e3,
            "ms",
        ),
    ]
    for micros in RECONFIGURATIONS_US:
        model = phase_costs.halving_doubling_switched(on, nbytes, micros * 1e-6)
        found = phase_costs.least_switched(steps, micros * 1e-6)
        what = f"{row}: halving, switched in {micros} us"
        claims += [
            Claim(what, model[0] * 1e3, found[0] * 1e3, "ms"),
            Claim(f"{what}: how often", model[1], found[1]),
        ]
    return claims


def _rotation() -> Reproduction:
    ranks = 64
    on = Circuits(ranks, BANDWIDTH)
    ring = simulator.Network.ring(ranks, SPEED)
    forwarded = algorithms.forwarded_all_to_all(ranks)
    claims = [
        Claim(
            f"{ranks} ranks, 1 GiB each: forwarded over a ring",
            phase_costs.all_to_all_on_ring(on, GIB) * 1e3,
            forwarded.replay(ring, GIB).seconds * 1e3,
            "ms",
        )
    ]
    # Each round has its own circuits, which are one hop each.
    rounds = simulator.rounds("pairwise", "all_to_all", _switch(ranks), GIB)
    claims += [
        Claim(
            f"{ranks} ranks, 1 GiB each: switched in {micros} us",
            phase_costs.all_to_all_rotating(on, GIB, micros * 1e-6) * 1e3,
            sum(micros * 1e-6 + each.seconds for each in rounds) * 1e3,
            "ms",
        )
        for micros in (1, 1000, 25000)
    ]
    at_once = sum(each.seconds for each in rounds) * 1e3
    # Both ways have the same number of message starts: the difference is proportional to the bytes.
    spared = (claims[0].simulated - at_once) / GIB / (ranks - 1)
    claims += [
        Claim(
            f"{ranks} ranks, {mib} MiB each: as long where switched in",
            mib * MIB / BANDWIDTH * (1 / 2 - 1 / ranks) * 1e3,
            spared * mib * MIB,
            "ms",
        )
        for mib in (64, 1024, 4096)
    ]
    return Reproduction(
        "rotation",
        "When Light Bends, arXiv 2510.08072; To Reconfigure or Not, arXiv 2602.10468",
        "all_to_all: (n-1)(alpha + delta) + (n-1) m/(2B) forwarded over a ring, "
        "(n-1)(r + alpha + delta + m/(n B)) on circuits that rotate",
        table.Table(claims),
    )


_MAKERS: dict[str, Callable[[], Reproduction]] = {
    "ring": _ring,
    "pat": _pat,
    "swing": _swing,
    "all_pairs": _all_pairs,
    "two_step": _two_step,
    "circuits": _circuits,
    "rotation": _rotation,
}

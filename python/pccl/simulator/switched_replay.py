# SPDX-License-Identifier: Apache-2.0
"""Simulation of a program that switches phases of the network, each part on its own network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pccl import _core
from pccl._internal.sizes import bytes_of
from pccl._internal.time_limits import duration_of
from pccl.errors import InvalidArgumentError
from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pccl.simulator.networks import Network

__all__ = ["PhaseReplay", "SwitchedReplay", "replay_switched"]


@dataclass(frozen=True)
class PhaseReplay:
    """Simulated part between two switches.

    Attributes
    ----------
    phase
        The phase of the network; empty before the first switch.
    seconds
        The seconds of its messages and reductions.
    rounds, messages, bytes_sent
        As in ``pccl.simulator.Replay``.
    """

    phase: str
    seconds: float
    rounds: int
    messages: int
    bytes_sent: float

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)


@dataclass(frozen=True, repr=False)
class SwitchedReplay:
    """Simulated capsule; prints as text, and as a table in notebooks.

    Attributes
    ----------
    name, collective, ranks
        The properties of the capsule.
    nbytes
        The bytes of the largest buffer.
    seconds
        The seconds of all parts and switches in sequence; all ranks wait for each other at a
        switch.
    switches
        The number of switches to another phase.
    reconfiguration
        The seconds of one switch.
    parts
        The parts between the switches.
    """

    name: str
    collective: str
    ranks: int
    nbytes: int
    seconds: float
    switches: int
    reconfiguration: float
    parts: table.Table[PhaseReplay]

    @property
    def rows(self) -> list[table.Fields]:
        """The parts as dictionaries, for ``polars.DataFrame(replay.rows)``."""
        return self.parts.rows

    def __repr__(self) -> str:
        lines = [
            f"{self.name}: {self.collective} of {self.nbytes} bytes, {self.ranks} ranks: "
            f"{self.seconds * 1e3:.3f} ms, {self.switches} switches of "
            f"{self.reconfiguration * 1e3:g} ms"
        ]
        lines += [
            f"  {part.phase or 'before':<16} {part.seconds * 1e3:>10.3f} ms {part.rounds:>4} rounds"
            for part in self.parts
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return table.html_table(self.rows, caption=repr(self).splitlines()[0])


def replay_switched(
    capsule: _core.Capsule,
    networks: Mapping[str, Network],
    nbytes: int | str,
    reconfiguration: float,
) -> SwitchedReplay:
    """Simulate a capsule; see ``pccl.Capsule.replay``.

    Parameters
    ----------
    capsule
        Capsule that switches phases; a capsule without switches has one part before the first
        switch.
    networks
        Network of each phase, by name; ``""`` is the network before the first switch.
    nbytes, reconfiguration
        As for ``pccl.Capsule.replay``.

    Raises
    ------
    InvalidArgumentError
        A phase has no network, or ``reconfiguration`` is negative, infinite, or not a number.
    """
    duration_of(reconfiguration, "reconfiguration")
    size = bytes_of(nbytes)
    schedule = capsule.schedule
    parts: table.Table[PhaseReplay] = table.Table([])
    switches, before = 0, ""
    for phase, piece in _core.Piece.parts_of_capsule(capsule):
        switches += phase != before
        before = phase
        if piece is None:
            continue
        if phase not in networks:
            raise InvalidArgumentError(
                f"there is no network for phase {phase or 'before the first switch'!r} of "
                f"{schedule.name}; there are those of {', '.join(map(repr, networks))}"
            )
        found = piece.replay(networks[phase]._core, size)
        parts.append(
            PhaseReplay(phase, found.seconds, found.rounds, found.messages, found.bytes_sent)
        )
    return SwitchedReplay(
        schedule.name,
        schedule.collective,
        schedule.ranks,
        size,
        sum(part.seconds for part in parts) + switches * reconfiguration,
        switches,
        reconfiguration,
        parts,
    )

# SPDX-License-Identifier: Apache-2.0
"""A cluster over time: what its switches show against what is meant, and what switching takes."""

from __future__ import annotations

import dataclasses
import statistics
import time
from typing import TYPE_CHECKING, Protocol

from pccl.arguments import require_int
from pccl.cluster_results import Pairs, arrows
from pccl.errors import InvalidArgumentError, MismatchError
from pccl.table import Table
from pccl.time_limits import limit_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from pccl.cluster_results import Plan, Sight, Switched
    from pccl.table import Fields

__all__ = ["SHORTEST_REST", "Drift", "Measured", "StepMedian", "measure", "watch"]

SHORTEST_REST = 2.0
"""Seconds between two looks at switches: some servers (netconfd) take an unconfirmed commit back
only once nobody has asked them anything for a second."""


class _Cluster(Protocol):
    """What is asked of a ``pccl.Cluster``."""

    @property
    def has_addresses(self) -> bool: ...
    def plan(self, source: str | None, target: str) -> Plan: ...
    def show(self, *, timeout: float | timedelta) -> Table[Sight]: ...
    def phase_shown(self, *, timeout: float | timedelta) -> str | None: ...
    def switch(self, phase: str, *, timeout: float | timedelta) -> Switched: ...


@dataclasses.dataclass(frozen=True)
class Drift:
    """How one switch differs from the phase that is meant.

    ``missing`` circuits are not there, ``foreign`` ones should not be; ``fault`` says why neither
    is known.
    """

    name: str
    phase: str
    missing: Pairs
    foreign: Pairs
    fault: str

    @property
    def is_as_meant(self) -> bool:
        """Whether the switch has the circuits of the phase, and no others."""
        return not (self.missing or self.foreign or self.fault)

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {
            "switch": self.name,
            "phase": self.phase,
            "missing": arrows(self.missing),
            "foreign": arrows(self.foreign),
            "fault": self.fault,
        }

    def __str__(self) -> str:
        if self.is_as_meant:
            return f"{self.name}: {self.phase}, as meant"
        if self.fault:
            return f"{self.name}: {self.fault}"
        differences = [("missing", self.missing), ("not meant", self.foreign)]
        shown = "; ".join(f"{arrows(pairs)} {what}" for what, pairs in differences if pairs)
        return f"{self.name}: not {self.phase}: {shown}"


def watch(
    cluster: _Cluster, phase: str | None, *, interval: float | timedelta, timeout: float | timedelta
) -> Iterator[Table[Drift]]:
    """Yield what differs, at once and again whenever that changes, until the caller ends it.

    Switches with an address are left alone for ``SHORTEST_REST`` between two looks, at least.

    Raises
    ------
    InvalidArgumentError
        There is no such phase, or the interval is not above 0.
    MismatchError
        No phase is given, and the switches show none.
    """
    if interval == 0:
        raise InvalidArgumentError("interval is 0 s: it must be above 0")
    interval = limit_of(interval, "interval")
    meant = phase or cluster.phase_shown(timeout=timeout)
    if meant is None:
        raise MismatchError("the switches show no phase of the file: name the one that is meant")
    wanted = {each.name: each.add for each in cluster.plan(None, meant).switches}
    rest = max(interval, SHORTEST_REST if cluster.has_addresses else 0.0)
    last: Table[Drift] | None = None
    while True:
        sights = cluster.show(timeout=timeout)
        now = Table(_drift(sight, meant, wanted.get(sight.name, ())) for sight in sights)
        if now != last:
            yield now
        last = now
        time.sleep(rest)


def _drift(sight: Sight, phase: str, wanted: Pairs) -> Drift:
    if sight.fault:
        return Drift(sight.name, phase, (), (), sight.fault)
    shown, meant = set(sight.circuits), set(wanted)
    missing = tuple(pair for pair in wanted if pair not in shown)
    foreign = tuple(pair for pair in sight.circuits if pair not in meant)
    return Drift(sight.name, phase, missing, foreign, "")


@dataclasses.dataclass(frozen=True)
class StepMedian:
    """The median time of one step on one switch, in milliseconds."""

    name: str
    step: str
    ms: float

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {"switch": self.name, "step": self.step, "ms": self.ms}


@dataclasses.dataclass(frozen=True)
class Measured:
    """What switching back and forth between two phases takes; medians, in milliseconds.

    ``dark_ms`` is from the first commit until the last circuit is proven, with the settling time;
    ``seconds`` is the ``reconfiguration`` that ``pccl.advise`` takes.
    """

    first: str
    second: str
    switches: int
    total_ms: float
    dark_ms: float
    longest_ms: float
    steps: Table[StepMedian]

    @property
    def seconds(self) -> float:
        """The median of a whole switch, in seconds."""
        return self.total_ms / 1e3

    def __str__(self) -> str:
        lines = [
            f"{self.first} <-> {self.second}: {self.switches} times, "
            f"{self.total_ms:.1f} ms, dark {self.dark_ms:.1f} ms, longest {self.longest_ms:.1f} ms"
        ]
        lines += [f"  {each.name}: {each.step} {each.ms:.1f} ms" for each in self.steps]
        return "\n".join(lines)


def measure(
    cluster: _Cluster, first: str, second: str, *, rounds: int, timeout: float | timedelta
) -> Measured:
    """Switch back and forth, and return the medians; the cluster ends in the second phase.

    Raises
    ------
    InvalidArgumentError
        There is no such phase, both are the same, or there are no rounds.
    SwitchError
        A switch of phases was refused or rolled back, or the cluster is degraded.
    """
    require_int(rounds, "rounds")
    if first == second or rounds < 1:
        raise InvalidArgumentError(
            f"{rounds} rounds between {first} and {second}: there must be two phases, and 1 or more"
        )
    cluster.switch(first, timeout=timeout)
    wanted = [second, first] * (rounds - 1) + [second]
    found = [cluster.switch(phase, timeout=timeout) for phase in wanted]
    totals = [each.total_ms for each in found]
    return Measured(
        first=first,
        second=second,
        switches=len(found),
        total_ms=statistics.median(totals),
        dark_ms=statistics.median(each.dark_ms for each in found),
        longest_ms=max(totals),
        steps=_medians(found),
    )


def _medians(found: list[Switched]) -> Table[StepMedian]:
    times: dict[tuple[str, str], list[float]] = {}
    for result in found:
        for each in result.switches:
            for step, ms in each.steps:
                times.setdefault((each.name, step), []).append(ms)
    return Table(
        StepMedian(name, step, statistics.median(ms)) for (name, step), ms in times.items()
    )

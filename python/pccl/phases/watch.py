# SPDX-License-Identifier: Apache-2.0
"""A cluster over time: differences from the intended phase, and times of switching."""

from __future__ import annotations

import dataclasses
import statistics
import time
from typing import TYPE_CHECKING, Protocol

from pccl._internal.arguments import require_int
from pccl._internal.time_limits import limit_of
from pccl.errors import InvalidArgumentError, MismatchError
from pccl.phases.results import Pairs, arrows
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from pccl.phases.results import Plan, Sight, Switched
    from pccl.results.table import Fields

__all__ = ["SHORTEST_REST", "Drift", "Measured", "StepMedian", "measure", "watch"]

SHORTEST_REST = 2.0
"""Minimum seconds between two reads of switches: some servers (netconfd) roll back an unconfirmed
commit only after one second without a request."""


class _Cluster(Protocol):
    """Interface of ``pccl.Cluster`` for this module."""

    @property
    def has_addresses(self) -> bool: ...
    def plan(self, source: str | None, target: str) -> Plan: ...
    def show(self, *, timeout: float | timedelta) -> Table[Sight]: ...
    def phase_shown(self, *, timeout: float | timedelta) -> str | None: ...
    def switch(self, phase: str, *, timeout: float | timedelta) -> Switched: ...


@dataclasses.dataclass(frozen=True)
class Drift:
    """Differences of one switch from the intended phase.

    ``missing`` circuits are not connected, ``foreign`` circuits do not belong to the phase;
    ``fault`` is the reason if both are unknown.
    """

    name: str
    phase: str
    missing: Pairs
    foreign: Pairs
    fault: str

    @property
    def is_as_meant(self) -> bool:
        """Whether the switch has exactly the circuits of the phase."""
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
    """Yield the differences, at once and after every change, until the caller ends the iteration.

    Switches with an address are read at most every ``SHORTEST_REST`` seconds.

    Raises
    ------
    InvalidArgumentError
        The phase does not exist, or the interval is not above 0.
    MismatchError
        No phase is given, and the circuits of the switches match none.
    """
    if interval == 0:
        raise InvalidArgumentError("interval is 0 s: it must be above 0")
    interval = limit_of(interval, "interval")
    meant = cluster.phase_shown(timeout=timeout) if phase is None else phase
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
    """Median time of one step on one switch, in milliseconds."""

    name: str
    step: str
    ms: float

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {"switch": self.name, "step": self.step, "ms": self.ms}


@dataclasses.dataclass(frozen=True)
class Measured:
    """Median times of switching back and forth between two phases, in milliseconds.

    ``dark_ms`` is the time from the first commit until the last circuit is verified, including the
    settling time. ``seconds`` is the ``reconfiguration`` argument of ``pccl.phase_costs.advise``.
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
        A phase does not exist, both are the same, or ``rounds`` is less than 1.
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

# SPDX-License-Identifier: Apache-2.0
"""Results of planning, switching and reading phases, with text and table output."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pccl.errors import Error
from pccl.results.table import Table, html_table

if TYPE_CHECKING:
    import matplotlib.figure

    from pccl.results.table import Fields

__all__ = [
    "Pairs",
    "Plan",
    "Sight",
    "StepTime",
    "SwitchError",
    "SwitchPlan",
    "SwitchTimes",
    "Switched",
    "arrows",
    "count_of",
    "pairs_of",
    "raise_unless_done",
    "switched_as_told",
]

Pairs: TypeAlias = tuple[tuple[int, int], ...]

_MOST_SHOWN = 12


def arrows(pairs: Pairs) -> str:
    """Return "1->2, 2->3", shortened if there are many pairs."""
    shown = ", ".join(f"{first}->{second}" for first, second in pairs[:_MOST_SHOWN])
    more = len(pairs) - _MOST_SHOWN
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def count_of(number: int, what: str) -> str:
    """Return "1 switch" or "2 switches"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}es"


@dataclasses.dataclass(frozen=True)
class SwitchPlan:
    """Changes on one switch: unidirectional circuits from one port to another.

    ``xml`` is the request to the switch; empty for an emulated fabric of this process.
    """

    name: str
    remove: Pairs
    add: Pairs
    xml: str

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {"switch": self.name, "removes": arrows(self.remove), "adds": arrows(self.add)}


@dataclasses.dataclass(frozen=True)
class Plan:
    """Difference between two phases, computed without contacting a switch.

    Links are pairs of ranks, from one to the other. ``kept`` links do not change; ``lost`` and
    ``gained`` links are in one phase only; ``moved`` links are in both phases, and dark in between.
    ``seconds`` is the estimated time without light.
    """

    source: str
    target: str
    switches: Table[SwitchPlan]
    kept: Pairs
    moved: Pairs
    lost: Pairs
    gained: Pairs
    seconds: float

    def __str__(self) -> str:
        lines = [self._headline()]
        lines += [
            f"  {each.name}: removes {arrows(each.remove)}; adds {arrows(each.add)}"
            for each in self.switches
        ]
        for what, links in [("lost", self.lost), ("gained", self.gained), ("moved", self.moved)]:
            if links:
                lines.append(f"  links {what}: {arrows(links)}")
        return "\n".join(lines)

    def _headline(self) -> str:
        count = count_of(len(self.switches), "switch")
        return (
            f"{self.source or 'nothing'} -> {self.target}: {count}, "
            f"dark for about {self.seconds * 1e3:.1f} ms"
        )

    def __repr__(self) -> str:
        return f"<pccl.Plan {self._headline()}>"

    def _repr_html_(self) -> str:
        return html_table(self.switches.rows, caption=self._headline())

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the links of both phases between the ranks; lost, gained and moved links are marked.

        Returns
        -------
        matplotlib.figure.Figure
            Ranks in a circle, with an arrow for each link.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.phases.cluster_plot import draw_links

        kinds = {"kept": self.kept, "moved": self.moved, "lost": self.lost, "gained": self.gained}
        return draw_links(f"{self.source or 'nothing'} -> {self.target}", kinds)


class StepTime(NamedTuple):
    """Time of one step of a transaction on one switch.

    Attributes
    ----------
    step
        The name of the step: ``"lock"``, ``"prepare"``.
    ms
        Milliseconds until the switch answered.
    """

    step: str
    ms: float


@dataclasses.dataclass(frozen=True)
class SwitchTimes:
    """Actions of one switch: the times of its steps, the circuits that were read, and its fault.

    ``discarded`` lists edits of others that were discarded with its candidate. ``startup`` is
    ``"copied"`` if the change was copied to the startup configuration, ``"not copied"`` if the
    switch has a startup configuration that was not changed, the reason why copying failed, or empty
    if the running configuration is also the startup configuration.
    """

    name: str
    steps: tuple[StepTime, ...]
    found: Pairs
    fault: str
    discarded: str = ""
    startup: str = ""

    def row(self) -> Fields:
        """Return its fields, with the sum of each kind of step."""
        sums: dict[str, object] = {}
        for step, ms in self.steps:
            sums[f"{step}_ms"] = float(str(sums.get(f"{step}_ms", 0.0))) + ms
        return {
            "switch": self.name,
            **sums,
            "discarded": self.discarded,
            "startup": self.startup,
            "fault": self.fault,
        }


@dataclasses.dataclass(frozen=True)
class Switched:
    """Outcome of a switch of phases.

    ``outcome`` is ``"switched"``, ``"prepared"`` (a dry run), ``"refused"`` (nothing was changed),
    ``"rolled back"`` (the old state is restored) or ``"degraded"`` (a switch could not be
    verified). ``unrecorded`` is the reason why the outcome is missing in the audit log, for example
    a full disk; empty if it is recorded or there is no log.
    """

    phase: str
    outcome: str
    reason: str
    total_ms: float
    dark_ms: float
    switches: Table[SwitchTimes]
    unrecorded: str = ""

    def __repr__(self) -> str:
        count = count_of(len(self.switches), "switch")
        lost = f"; {self.unrecorded}" if self.unrecorded else ""
        if self.outcome == "switched":
            dark = f"dark for {self.dark_ms:.1f} ms"
            return f"<pccl.Switched to {self.phase}: {count}, {dark}{lost}>"
        because = f": {self.reason}" if self.reason else ""
        return f"<pccl.Switched to {self.phase}: {self.outcome}, {count}{because}{lost}>"

    def _repr_html_(self) -> str:
        if not self.switches:
            return f"<p>{html.escape(repr(self))}</p>"
        return html_table(self.switches.rows, caption=repr(self))


def pairs_of(told: Any) -> Pairs:
    """Return the pairs of a JSON list."""
    return tuple((first, second) for first, second in told)


def switched_as_told(phase: str, told: Any) -> Switched:
    """Return the result of a JSON object."""
    return Switched(
        phase=phase,
        outcome=told["outcome"],
        reason=told["reason"],
        total_ms=told["total_ms"],
        dark_ms=told["dark_ms"],
        unrecorded=told["unrecorded"],
        switches=Table(
            SwitchTimes(
                each["name"],
                tuple(StepTime(step["step"], step["ms"]) for step in each["steps"]),
                pairs_of(each["found"]),
                each["fault"],
                each["discarded"],
                each["startup"],
            )
            for each in told["switches"]
        ),
    )


def raise_unless_done(phase: str, told: Any) -> Switched:
    """Return the result of a JSON object if the switch was successful.

    Raises
    ------
    SwitchError
        The switch was not successful.
    """
    result = switched_as_told(phase, told)
    if result.outcome in {"switched", "prepared"}:
        return result
    lost = f"; {result.unrecorded}" if result.unrecorded else ""
    message = f"phase {phase}: {result.outcome}: {result.reason}{lost}"
    raise SwitchError(message, told["code"], result)


class SwitchError(Error):
    """Error of a switch of phases; ``result`` has the outcome and the actions of each switch."""

    result: Switched

    def __init__(self, message: str, code: str, result: Switched) -> None:
        super().__init__(message)
        self.code = code
        self.result = result


@dataclasses.dataclass(frozen=True)
class Sight:
    """Circuits of one switch; ``fault`` is the reason if they are unknown.

    ``dark`` lists connected ports without incoming light, for switches that report light.
    """

    name: str
    circuits: Pairs
    fault: str
    dark: tuple[int, ...] = ()

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {
            "switch": self.name,
            "circuits": arrows(self.circuits),
            "fault": self.fault,
            "dark": ", ".join(map(str, self.dark)),
        }

# SPDX-License-Identifier: Apache-2.0
"""What comes of planning, switching and looking at phases: values that show themselves."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pccl.errors import Error
from pccl.table import Table, html_table

if TYPE_CHECKING:
    import matplotlib.figure

    from pccl.table import Fields

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
    """Return "1->2, 2->3", shortened where there are many."""
    shown = ", ".join(f"{first}->{second}" for first, second in pairs[:_MOST_SHOWN])
    more = len(pairs) - _MOST_SHOWN
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def count_of(number: int, what: str) -> str:
    """Return "1 switch" or "2 switches"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}es"


@dataclasses.dataclass(frozen=True)
class SwitchPlan:
    """What changes on one switch: circuits from a port to another, one way each.

    ``xml`` is what the switch would be sent; empty for a fabric of this process.
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
    """The difference between two phases; nothing was asked of any switch.

    Links are pairs of ranks, from one to the other: ``kept`` ones, ``lost`` and ``gained`` ones;
    ``moved`` ones are in both phases, and dark in between. ``seconds`` estimates how long light is
    away.
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
        """Draw the links of both phases between the ranks; what is lost, gained or moved shows.

        Returns
        -------
        matplotlib.figure.Figure
            Ranks in a circle, with an arrow for each link.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.cluster_plot import draw_links

        kinds = {"kept": self.kept, "moved": self.moved, "lost": self.lost, "gained": self.gained}
        return draw_links(f"{self.source or 'nothing'} -> {self.target}", kinds)


class StepTime(NamedTuple):
    """How long one step of a transaction took on one switch.

    Attributes
    ----------
    step
        What was asked of it: ``"lock"``, ``"prepare"``.
    ms
        Milliseconds until it had answered.
    """

    step: str
    ms: float


@dataclasses.dataclass(frozen=True)
class SwitchTimes:
    """What one switch did: its steps in milliseconds, what it was read to have, what went wrong.

    ``discarded`` names edits of others that were thrown away with its candidate. ``startup`` is
    ``"copied"`` where it will start with what was switched, ``"not copied"`` where it has a startup
    configuration that was left alone, why copying failed, or empty: what it runs is what it starts
    with.
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
    """What became of a switch of phases.

    ``outcome`` is ``"switched"``, ``"prepared"`` (a dry run), ``"refused"`` (nothing was touched),
    ``"rolled back"`` (all is as before) or ``"degraded"`` (some switch could not be proven).
    ``unrecorded`` says why this is not in the audit log, as on a full disk; empty: it is, or there
    is no log.
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
    """Return pairs as JSON has them."""
    return tuple((first, second) for first, second in told)


def switched_as_told(phase: str, told: Any) -> Switched:
    """Return a result as JSON has it."""
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
    """Return a result as JSON has it, where it is what was wanted.

    Raises
    ------
    SwitchError
        It is not.
    """
    result = switched_as_told(phase, told)
    if result.outcome in {"switched", "prepared"}:
        return result
    lost = f"; {result.unrecorded}" if result.unrecorded else ""
    message = f"phase {phase}: {result.outcome}: {result.reason}{lost}"
    raise SwitchError(message, told["code"], result)


class SwitchError(Error):
    """A phase was not switched to; ``result`` says how far it came, and what each switch did."""

    result: Switched

    def __init__(self, message: str, code: str, result: Switched) -> None:
        super().__init__(message)
        self.code = code
        self.result = result


@dataclasses.dataclass(frozen=True)
class Sight:
    """What one switch has connected; ``fault`` says why that is not known.

    Light comes in at no port of ``dark``, though these are connected; of switches that tell.
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

"""Phases: which links there are between ranks, and how they are switched.

>>> cluster = pccl.Cluster({
...     "devices": [{}] * 4,
...     "phases": {
...         "ring": {"links": "ring"},
...         "pairs": {"links": [[0, 1], [2, 3]], "duplex": True},
...     },
... })
>>> cluster.switch("ring")
<pccl.Switched to ring: 1 switch, dark for 0.0 ms>
>>> print(cluster.plan("ring", "pairs"))
ring -> pairs: 1 switch, dark for about 0.0 ms
  fabric: removes 3->5, 7->1; adds 3->1, 7->5
  links lost: 1->2, 3->0
  links gained: 1->0, 3->2
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pccl._core import Controller
from pccl.cluster_file import read_cluster_file
from pccl.errors import Error, UnavailableError
from pccl.table import Table, html_table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    import matplotlib.figure

    from pccl.table import Fields

__all__ = ["Cluster", "Plan", "Sight", "SwitchError", "SwitchPlan", "SwitchTimes", "Switched"]

Pairs: TypeAlias = tuple[tuple[int, int], ...]

_MOST_SHOWN = 12


def _pairs(of: Any) -> Pairs:
    return tuple((first, second) for first, second in of)


def _arrows(pairs: Pairs) -> str:
    shown = ", ".join(f"{first}->{second}" for first, second in pairs[:_MOST_SHOWN])
    more = len(pairs) - _MOST_SHOWN
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _count(number: int, what: str) -> str:
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
        return {"switch": self.name, "removes": _arrows(self.remove), "adds": _arrows(self.add)}


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
            f"  {each.name}: removes {_arrows(each.remove)}; adds {_arrows(each.add)}"
            for each in self.switches
        ]
        for what, links in [("lost", self.lost), ("gained", self.gained), ("moved", self.moved)]:
            if links:
                lines.append(f"  links {what}: {_arrows(links)}")
        return "\n".join(lines)

    def _headline(self) -> str:
        count = _count(len(self.switches), "switch")
        return (
            f"{self.source or 'nothing'} -> {self.target}: {count}, "
            f"dark for about {self.seconds * 1e3:.1f} ms"
        )

    def __repr__(self) -> str:
        return f"<pccl.Plan {self._headline()}>"

    def _repr_html_(self) -> str:
        return html_table(self.switches.rows, caption=self._headline())

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the links of both phases between the ranks; what is lost, gained or moved shows."""
        from pccl.cluster_plot import draw_links

        kinds = {"kept": self.kept, "moved": self.moved, "lost": self.lost, "gained": self.gained}
        return draw_links(f"{self.source or 'nothing'} -> {self.target}", kinds)


@dataclasses.dataclass(frozen=True)
class SwitchTimes:
    """What one switch did: its steps in milliseconds, what it was read to have, what went wrong."""

    name: str
    steps: tuple[tuple[str, float], ...]
    found: Pairs
    fault: str

    def row(self) -> Fields:
        """Return its fields, with the sum of each kind of step."""
        sums: dict[str, object] = {}
        for step, ms in self.steps:
            sums[f"{step}_ms"] = float(str(sums.get(f"{step}_ms", 0.0))) + ms
        return {"switch": self.name, **sums, "fault": self.fault}


@dataclasses.dataclass(frozen=True)
class Switched:
    """What became of a switch of phases.

    ``outcome`` is ``"switched"``, ``"prepared"`` (a dry run), ``"refused"`` (nothing was touched),
    ``"rolled back"`` (all is as before) or ``"degraded"`` (some switch could not be proven).
    """

    phase: str
    outcome: str
    reason: str
    total_ms: float
    dark_ms: float
    switches: Table[SwitchTimes]

    def __repr__(self) -> str:
        count = _count(len(self.switches), "switch")
        if self.outcome == "switched":
            return f"<pccl.Switched to {self.phase}: {count}, dark for {self.dark_ms:.1f} ms>"
        because = f": {self.reason}" if self.reason else ""
        return f"<pccl.Switched to {self.phase}: {self.outcome}, {count}{because}>"

    def _repr_html_(self) -> str:
        if not self.switches:
            return f"<p>{html.escape(repr(self))}</p>"
        return html_table(self.switches.rows, caption=repr(self))


class SwitchError(Error):
    """A phase was not switched to; ``result`` says how far it came, and what each switch did."""

    result: Switched

    def __init__(self, message: str, code: str, result: Switched) -> None:
        super().__init__(message)
        self.code = code
        self.result = result


@dataclasses.dataclass(frozen=True)
class Sight:
    """What one switch has connected; ``fault`` says why that is not known."""

    name: str
    circuits: Pairs
    fault: str

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {"switch": self.name, "circuits": _arrows(self.circuits), "fault": self.fault}


class Cluster:
    """Devices, the switches between them, and phases: the controller, which one process has.

    Parameters
    ----------
    description
        What a cluster file says, as Python values. Without switches there is a fabric in this
        process, to which every device has two ports.
    name
        What stands for it in messages.
    """

    def __init__(self, description: Mapping[str, object], *, name: str = "cluster") -> None:
        self._controller = Controller(json.dumps(description), name)
        self._turn = threading.Lock()
        self._current, self._generation, self._degraded = "", 0, ""
        told = json.loads(self._controller.description)
        self._phases = {each["name"]: _pairs(each["links"]) for each in told["phases"]}
        self._ranks = len(told["devices"])
        self._switches = [each["name"] for each in told["switches"]]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cluster:
        """Read a cluster file: YAML, or JSON where its name ends in ``.json``.

        Parameters
        ----------
        path
            Where it is. YAML needs PyYAML.

        Raises
        ------
        InvalidArgumentError
            Something in it is wrong; the message says where, and what would be right.
        """
        return cls(read_cluster_file(Path(path)), name=str(path))

    @property
    def phases(self) -> dict[str, Pairs]:
        """The links of each phase, from one rank to another."""
        return dict(self._phases)

    @property
    def ranks(self) -> int:
        """How many devices there are."""
        return self._ranks

    @property
    def current(self) -> str | None:
        """The phase that was last proven; None before one was."""
        return self._current or None

    @property
    def generation(self) -> int:
        """How often circuits have changed since this was made."""
        return self._generation

    @property
    def degraded(self) -> str | None:
        """Which switch could not be proven, and what to do; None: none."""
        return self._degraded or None

    def plan(self, source: str | None, target: str) -> Plan:
        """Tell what it takes to get from one phase to another; no switch is asked.

        Parameters
        ----------
        source
            A phase; None stands for nothing connected.
        target
            Another one.

        Raises
        ------
        InvalidArgumentError
            There is no such phase.
        """
        told = json.loads(self._controller.plan(source or "", target))
        lost, moved = _pairs(told["lost"]), _pairs(told["moved"])
        before = self._phases.get(source or "", ())
        return Plan(
            source=source or "",
            target=target,
            switches=Table(
                SwitchPlan(each["name"], _pairs(each["remove"]), _pairs(each["add"]), each["xml"])
                for each in told["switches"]
            ),
            kept=tuple(link for link in before if link not in {*lost, *moved}),
            moved=moved,
            lost=lost,
            gained=_pairs(told["gained"]),
            seconds=told["seconds"],
        )

    def switch(
        self, phase: str, *, dry_run: bool = False, timeout: float = 5.0, adopt: bool = False
    ) -> Switched:
        """Switch all devices to a phase, or none; Ctrl-C rolls back.

        Nothing waits for collectives that are under way: let ranks finish first.

        Parameters
        ----------
        phase
            Which one; the current one is read and proven, and not touched.
        dry_run
            Only have the switches check the change.
        timeout
            Of each step on all switches, in seconds.
        adopt
            Take what the switches show for what is meant, whatever that is: overwrites it.

        Returns
        -------
        Switched
            How long it took, on each switch.

        Raises
        ------
        InvalidArgumentError
            There is no such phase.
        MismatchError
            The switches show circuits of no phase.
        SwitchError
            It was refused or rolled back, or is degraded.
        """
        with self._alone() as controller:
            told = json.loads(controller.switch_to(phase, timeout, dry_run, adopt))
        result = Switched(
            phase=phase,
            outcome=told["outcome"],
            reason=told["reason"],
            total_ms=told["total_ms"],
            dark_ms=told["dark_ms"],
            switches=Table(
                SwitchTimes(
                    each["name"],
                    tuple((step["step"], step["ms"]) for step in each["steps"]),
                    _pairs(each["found"]),
                    each["fault"],
                )
                for each in told["switches"]
            ),
        )
        if told["outcome"] in {"switched", "prepared"}:
            return result
        message = f"phase {phase}: {result.outcome}: {result.reason}"
        raise SwitchError(message, told["code"], result)

    def show(self, *, timeout: float = 5.0) -> Table[Sight]:
        """Read what each switch has connected.

        Parameters
        ----------
        timeout
            In seconds. A switch that does not answer in time has a fault.

        Raises
        ------
        InvalidArgumentError
            The timeout is not from 0 to 3600 s.
        """
        return Table(
            Sight(each["name"], _pairs(each["circuits"]), each["fault"])
            for each in self._inspect(timeout)["switches"]
        )

    def phase_shown(self, *, timeout: float = 5.0) -> str | None:
        """Read all switches, and return the phase that they show; None: no phase's circuits.

        Parameters
        ----------
        timeout
            In seconds. A switch that does not answer in time shows no phase.

        Raises
        ------
        InvalidArgumentError
            The timeout is not from 0 to 3600 s.
        """
        return self._inspect(timeout)["phase"] or None

    def adopt(self, *, timeout: float = 5.0) -> str:
        """Take the phase that all switches show for the current one, and return its name.

        Parameters
        ----------
        timeout
            In seconds.

        Returns
        -------
        str
            The phase.

        Raises
        ------
        MismatchError
            They show circuits of no phase.
        """
        with self._alone() as controller:
            controller.adopt(timeout)
        return self._current

    def audit(self) -> list[dict[str, Any]]:
        """Return what this process did to the switches, oldest first."""
        with self._alone() as controller:
            return [json.loads(line) for line in controller.audit()]

    def _inspect(self, timeout: float) -> Any:
        with self._alone() as controller:
            return json.loads(controller.inspect(timeout))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[Controller]:
        """Keep other threads out, and signal handlers that call in the middle of a switch."""
        if not self._turn.acquire(blocking=False):
            raise UnavailableError("another call of this cluster is under way: call it again later")
        try:
            yield self._controller
        finally:
            self._current = self._controller.current
            self._generation = self._controller.generation
            self._degraded = self._controller.degraded
            self._turn.release()

    def __repr__(self) -> str:
        phases = ", ".join(self._phases) or "none"
        return (
            f"<pccl.Cluster {self._ranks} devices, {_count(len(self._switches), 'switch')}; "
            f"phases: {phases}; now: {self.current or 'not known'}>"
        )

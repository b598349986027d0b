# SPDX-License-Identifier: Apache-2.0
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
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pccl._core import Controller, PhaseNetwork
from pccl.cluster_file import read_cluster_file
from pccl.cluster_progress import watched
from pccl.cluster_results import (
    Plan,
    Sight,
    Switched,
    SwitchPlan,
    count_of,
    pairs_of,
    raise_unless_done,
)
from pccl.cluster_watch import Drift, Measured, measure, watch
from pccl.errors import UnavailableError
from pccl.table import Table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from datetime import timedelta

    from pccl.cluster_progress import Tell
    from pccl.cluster_results import Pairs

__all__ = ["Cluster"]


def _copy(description: dict[str, object], name: str) -> Cluster:
    return Cluster(description, name=name)


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
        self._description, self._name = description, name
        self._controller = Controller(json.dumps(description), name)
        self._turn = threading.Lock()
        self._current, self._generation, self._degraded = "", 0, ""
        told = json.loads(self._controller.description)
        self._phases = {each["name"]: pairs_of(each["links"]) for each in told["phases"]}
        self._ranks = len(told["devices"])
        self._switches = [each["name"] for each in told["switches"]]
        self._has_addresses = any(each["host"] for each in told["switches"])
        self._network = PhaseNetwork(
            self._ranks,
            [(each["name"], pairs_of(each["links"]), each["forward"]) for each in told["phases"]],
            has_hosts=self.has_addresses,
        )

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
    def has_addresses(self) -> bool:
        """Whether a switch is a device of its own, and not a fabric in this process."""
        return self._has_addresses

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
        lost, moved = pairs_of(told["lost"]), pairs_of(told["moved"])
        before = self._phases.get(source or "", ())
        return Plan(
            source=source or "",
            target=target,
            switches=Table(
                SwitchPlan(
                    each["name"], pairs_of(each["remove"]), pairs_of(each["add"]), each["xml"]
                )
                for each in told["switches"]
            ),
            kept=tuple(link for link in before if link not in {*lost, *moved}),
            moved=moved,
            lost=lost,
            gained=pairs_of(told["gained"]),
            seconds=told["seconds"],
        )

    def switch(
        self,
        phase: str,
        *,
        dry_run: bool = False,
        timeout: float | timedelta = 5.0,
        adopt: bool = False,
        discard_candidate: bool = False,
        progress: Tell | None = None,
    ) -> Switched:
        """Switch all devices to a phase, or none; Ctrl-C rolls back.

        Of a cluster that no job is on; the ranks of one call ``pccl.switch_phase``.

        Parameters
        ----------
        phase
            Which one; the current one is read and proven, and not touched.
        dry_run
            Only have the switches check the change.
        timeout
            Of each step on all switches, in seconds; an hour at most, also where more is given.
        adopt
            Take what the switches show for what is meant, whatever that is: overwrites it.
        discard_candidate
            Throw away edits that somebody has left in the candidate of a switch without committing
            them. Without it such a switch is refused, and the error names the edits; with it
            ``switches[i].discarded`` of the result names them.
        progress
            Called from another thread, about ten times a second once it takes more than a second,
            with how far each switch is. None shows that on a terminal or in a notebook.

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
        UnavailableError
            A job is on it, or another thread of this process switches.
        """
        if self._network.is_in_use:
            raise UnavailableError(
                "a job is on this cluster: all of its ranks call pccl.switch_phase"
            )
        text = self._switch_text(
            phase,
            timeout=timeout,
            dry_run=dry_run,
            adopt=adopt,
            discard_candidate=discard_candidate,
            progress=progress,
        )
        return raise_unless_done(phase, json.loads(text))

    def _switch_text(
        self,
        phase: str,
        *,
        timeout: float | timedelta,
        dry_run: bool,
        adopt: bool,
        discard_candidate: bool,
        drain: Callable[[], None] | None = None,
        progress: Tell | None = None,
    ) -> str:
        """Do what ``switch`` does, and return what became of it as JSON.

        ``drain`` is called once all switches are prepared; what it raises ends that.
        """
        with self._alone() as controller, watched(phase, progress) as board:
            return controller.switch_to(
                phase, timeout, dry_run, adopt, discard_candidate, drain, board
            )

    def show(self, *, timeout: float | timedelta = 5.0) -> Table[Sight]:
        """Read what each switch has connected.

        Parameters
        ----------
        timeout
            In seconds. A switch that does not answer in time has a fault.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0 s.
        """
        return Table(
            Sight(each["name"], pairs_of(each["circuits"]), each["fault"], tuple(each["dark"]))
            for each in self._inspect(timeout)["switches"]
        )

    def phase_shown(self, *, timeout: float | timedelta = 5.0) -> str | None:
        """Read all switches, and return the phase that they show; None: no phase's circuits.

        Parameters
        ----------
        timeout
            In seconds. A switch that does not answer in time shows no phase.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0 s.
        """
        return self._inspect(timeout)["phase"] or None

    def adopt(self, *, timeout: float | timedelta = 5.0) -> str:
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

    def watch(
        self,
        phase: str | None = None,
        *,
        interval: float | timedelta = 1.0,
        timeout: float | timedelta = 5.0,
    ) -> Iterator[Table[Drift]]:
        """Tell what differs from a phase, at once and whenever that changes.

        Parameters
        ----------
        phase
            What is meant; None for the phase that the switches show at first.
        interval
            Seconds between two looks; above 0. Switches with an address are left alone for at least
            2 s between two looks: some take an unconfirmed commit back only once nobody has asked
            them anything for a second.
        timeout
            In seconds. A switch that does not answer in time has a fault.

        Yields
        ------
        Table[Drift]
            For each switch what is missing and what is foreign.

        Raises
        ------
        InvalidArgumentError
            There is no such phase, or the interval is not above 0.
        MismatchError
            No phase is given, and the switches show none.
        """
        return watch(self, phase, interval=interval, timeout=timeout)

    def measure(
        self, first: str, second: str, *, rounds: int = 5, timeout: float | timedelta = 5.0
    ) -> Measured:
        """Switch back and forth between two phases, and tell how long that takes.

        Of a cluster that no job is on. It ends in the second phase.

        Parameters
        ----------
        first, second
            Two phases.
        rounds
            How often the second is switched to; 1 or more.
        timeout
            Of each step on all switches, in seconds; an hour at most, also where more is given.

        Returns
        -------
        Measured
            Medians; its ``seconds`` are what ``pccl.advise`` calls ``reconfiguration``.

        Raises
        ------
        InvalidArgumentError
            There is no such phase, both are the same, or there are no rounds.
        SwitchError
            A switch of phases was refused or rolled back, or the cluster is degraded.
        """
        return measure(self, first, second, rounds=rounds, timeout=timeout)

    def audit(self) -> list[dict[str, Any]]:
        """Return what this process did to the switches, oldest first."""
        with self._alone() as controller:
            return [json.loads(line) for line in controller.audit()]

    def _inherit(self, timeout: float | timedelta) -> str:
        """Adopt what a controller that died in the middle of a switch has left of it."""
        with self._alone() as controller:
            return controller.inherit(timeout)

    def _inspect(self, timeout: float | timedelta) -> Any:
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Ranks of ``pccl.run`` get clusters of their own."""
        return _copy, (dict(self._description), self._name)

    def __repr__(self) -> str:
        phases = ", ".join(self._phases) or "none"
        return (
            f"<pccl.Cluster {self._ranks} devices, {count_of(len(self._switches), 'switch')}; "
            f"phases: {phases}; now: {self.current or 'not known'}>"
        )

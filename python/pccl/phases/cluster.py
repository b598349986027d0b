# SPDX-License-Identifier: Apache-2.0
"""Clusters: the phases of a network, their links between ranks, and switching between them.

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

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pccl._core import Controller, PhaseNetwork
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.phases.cluster_file import read_cluster_file
from pccl.phases.progress import watched
from pccl.phases.results import (
    Plan,
    Sight,
    Switched,
    SwitchPlan,
    count_of,
    raise_unless_done,
)
from pccl.phases.watch import (
    Drift,
    Measured,
    measure,
    watch,
)
from pccl.results.table import Table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from pccl.phases.progress import Tell
    from pccl.phases.results import Pairs

__all__ = ["Cluster"]


def _copy(description: dict[str, object], name: str) -> Cluster:
    return Cluster(description, name=name)


class Cluster:
    """Controller of a cluster of devices, switches and phases. One process has it.

    Parameters
    ----------
    description
        Content of a cluster file, as Python values. Without switches, the process emulates a fabric
        with two ports for each device.
    name
        Name of the cluster in messages.
    """

    def __init__(self, description: Mapping[str, object], *, name: str = "cluster") -> None:
        self._description, self._name = description, name
        self._controller = Controller(json.dumps(description), name)
        reported = self._controller.description
        self._phases = {each["name"]: each["links"] for each in reported["phases"]}
        self._ranks = len(reported["devices"])
        self._switches = [each["name"] for each in reported["switches"]]
        self._has_addresses = any(each["host"] for each in reported["switches"])
        self._network = PhaseNetwork(
            self._ranks,
            [(each["name"], list(each["links"]), each["forward"]) for each in reported["phases"]],
            has_hosts=self.has_addresses,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cluster:
        """Read a cluster file: JSON if its name ends in ``.json``, otherwise YAML.

        Parameters
        ----------
        path
            Path of the file. YAML requires PyYAML.

        Raises
        ------
        InvalidArgumentError
            The file has an error; the message names the place and a correct value.
        """
        return cls(read_cluster_file(Path(path)), name=str(path))

    @property
    def phases(self) -> dict[str, Pairs]:
        """The links of each phase, from one rank to another."""
        return dict(self._phases)

    @property
    def ranks(self) -> int:
        """The number of devices, one for each rank."""
        return self._ranks

    @property
    def has_addresses(self) -> bool:
        """Whether a switch is a real device and not an emulated fabric of this process."""
        return self._has_addresses

    @property
    def current(self) -> str | None:
        """The phase that was last verified; None before the first."""
        return self._controller.state[0] or None

    @property
    def generation(self) -> int:
        """The number of changes of circuits since the cluster was created."""
        return self._controller.state[1]

    @property
    def degraded(self) -> str | None:
        """The switch that could not be verified, and the remedy; None if there is none."""
        return self._controller.state[2] or None

    def plan(self, source: str | None, target: str) -> Plan:
        """Return the plan of a switch from one phase to another, without contacting the switches.

        Parameters
        ----------
        source
            Old phase; None: nothing is connected.
        target
            New phase.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist.
        UnavailableError
            Another thread switches or reads the cluster.
        """
        if source == "":
            raise InvalidArgumentError("no phase has an empty name; None: nothing is connected")
        reported = self._controller.plan(source or "", target)
        lost, moved = reported["lost"], reported["moved"]
        before = self._phases.get(source or "", ())
        return Plan(
            source=source or "",
            target=target,
            switches=Table(
                SwitchPlan(each["name"], each["remove"], each["add"], each["xml"])
                for each in reported["switches"]
            ),
            kept=tuple(link for link in before if link not in {*lost, *moved}),
            moved=moved,
            lost=lost,
            gained=reported["gained"],
            seconds=reported["seconds"],
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

        It is for clusters that no job uses; the ranks of a job call ``pccl.switch_phase`` instead.

        Parameters
        ----------
        phase
            Name of the phase. If it is the current phase, the circuits are read and verified, but
            not changed.
        dry_run
            Only let the switches check the change.
        timeout
            Maximum seconds of each step on all switches; values above one hour are reduced to one
            hour.
        adopt
            Accept the current circuits of the switches as the old state, whatever they are, and
            overwrite them.
        discard_candidate
            Discard uncommitted edits of others in the candidate configuration of a switch;
            ``switches[i].discarded`` of the result lists them. Otherwise such edits cause a
            refusal, and the error lists them.
        progress
            Function that is called with the progress of each switch, from another thread, about ten
            times per second, if the switch takes more than one second. None displays the progress
            on a terminal or in a notebook.

        Returns
        -------
        Switched
            Outcome, with the times of each switch.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist.
        MismatchError
            The circuits of the switches match no phase.
        SwitchError
            The switch was refused or rolled back, or the cluster is degraded.
        UnavailableError
            A job uses the cluster, or another thread of this process uses it.
        """
        if self._network.is_in_use:
            raise UnavailableError(
                "a job is on this cluster: all of its ranks call pccl.switch_phase"
            )
        with watched(phase, progress) as board:
            report = self._controller.switch_phase(
                phase, timeout, dry_run, adopt, discard_candidate, board
            )
        return raise_unless_done(phase, report)

    def show(self, *, timeout: float | timedelta = 5.0) -> Table[Sight]:
        """Read the circuits of each switch.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches. A switch that does not answer in time has a fault
            in the result.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0.
        """
        return Table(
            Sight(each["name"], each["circuits"], each["fault"], each["dark"])
            for each in self._controller.inspect(timeout)["switches"]
        )

    def phase_shown(self, *, timeout: float | timedelta = 5.0) -> str | None:
        """Read all switches, and return their phase; None if their circuits match no phase.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches. If a switch does not answer in time, the result is
            None.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0.
        """
        return self._controller.inspect(timeout)["phase"] or None

    def adopt(self, *, timeout: float | timedelta = 5.0) -> str:
        """Set the current phase to the phase that all switches have, and return its name.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches.

        Returns
        -------
        str
            The phase.

        Raises
        ------
        MismatchError
            The circuits of the switches match no phase.
        """
        self._controller.adopt(timeout)
        return self._controller.state[0]

    def watch(
        self,
        phase: str | None = None,
        *,
        interval: float | timedelta = 1.0,
        timeout: float | timedelta = 5.0,
    ) -> Iterator[Table[Drift]]:
        """Yield the differences from a phase, at once and after every change.

        Parameters
        ----------
        phase
            Intended phase; None for the phase that the switches have at first.
        interval
            Seconds between two reads, above 0. Switches with an address are read at most every 2 s,
            because some roll back an unconfirmed commit only after one second without a request.
        timeout
            Maximum seconds of each read. A switch that does not answer in time has a fault in the
            result.

        Yields
        ------
        Table[Drift]
            Missing and foreign circuits of each switch.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist, or the interval is not above 0.
        MismatchError
            No phase is given, and the circuits of the switches match none.
        """
        return watch(self, phase, interval=interval, timeout=timeout)

    def measure(
        self, first: str, second: str, *, rounds: int = 5, timeout: float | timedelta = 5.0
    ) -> Measured:
        """Measure the time of switching back and forth between two phases.

        It is for clusters that no job uses. The cluster ends in the second phase.

        Parameters
        ----------
        first, second
            Two phases.
        rounds
            Number of switches to the second phase; 1 or more.
        timeout
            Maximum seconds of each step on all switches; values above one hour are reduced to one
            hour.

        Returns
        -------
        Measured
            Medians; ``seconds`` is the ``reconfiguration`` argument of ``pccl.phase_costs.advise``.

        Raises
        ------
        InvalidArgumentError
            A phase does not exist, both are the same, or ``rounds`` is less than 1.
        SwitchError
            A switch of phases was refused or rolled back, or the cluster is degraded.
        """
        return measure(self, first, second, rounds=rounds, timeout=timeout)

    def audit(self) -> list[dict[str, Any]]:
        """Return the actions of this process on the switches, oldest first."""
        return [json.loads(line) for line in self._controller.audit()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of a copy: each rank of ``pccl.run`` gets its own cluster."""
        return _copy, (dict(self._description), self._name)

    def __repr__(self) -> str:
        phases = ", ".join(self._phases) or "none"
        return (
            f"<pccl.Cluster {self._ranks} devices, {count_of(len(self._switches), 'switch')}; "
            f"phases: {phases}; now: {self.current or 'not known'}>"
        )

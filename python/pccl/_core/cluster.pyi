# SPDX-License-Identifier: Apache-2.0
"""Phases of a network, and the controller of its switches."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias, TypedDict

_Pairs: TypeAlias = tuple[tuple[int, int], ...]

# Part of one switch in a ``_NetworkReport``; ``SwitchTimes`` has its fields.
class _SwitchReport(TypedDict):
    name: str
    fault: str
    found: _Pairs
    discarded: str
    startup: str
    steps: tuple[tuple[str, float], ...]

# Report of a switch of phases by the C++ core; ``Switched`` has its fields.
class _NetworkReport(TypedDict):
    outcome: str
    code: str
    reason: str
    total_ms: float
    dark_ms: float
    unrecorded: str
    switches: tuple[_SwitchReport, ...]

# Phase of a cluster file.
class _PhaseDescription(TypedDict):
    name: str
    links: _Pairs
    forward: bool

# Device of a cluster file; ``ports`` are names of switches and numbers of their ports.
class _DeviceDescription(TypedDict):
    name: str
    rank: int
    ports: tuple[tuple[str, int], ...]

# Switch of a cluster file; ``host`` is empty for an emulated fabric.
class _SwitchDescription(TypedDict):
    name: str
    dialect: str
    host: str
    port: int
    settle_ms: int

# Content of a cluster file.
class _ClusterDescription(TypedDict):
    devices: tuple[_DeviceDescription, ...]
    switches: tuple[_SwitchDescription, ...]
    phases: tuple[_PhaseDescription, ...]

# Changes on one switch; ``SwitchPlan`` has its fields.
class _PlannedSwitch(TypedDict):
    name: str
    remove: _Pairs
    add: _Pairs
    xml: str

# Changes between two phases; ``Plan`` has its fields.
class _PlannedNetwork(TypedDict):
    switches: tuple[_PlannedSwitch, ...]
    moved: _Pairs
    lost: _Pairs
    gained: _Pairs
    seconds: float

# Reading of one switch; ``Sight`` has its fields.
class _SwitchReading(TypedDict):
    name: str
    fault: str
    circuits: _Pairs
    dark: tuple[int, ...]

# Reading of all switches; ``phase`` is empty if their circuits match none.
class _NetworkReading(TypedDict):
    phase: str
    switches: tuple[_SwitchReading, ...]

# Progress of one switch: the step, whether it has ended, and its error.
class _SwitchState(TypedDict):
    name: str
    doing: str
    done: bool
    fault: str

# Progress of a transaction; ``PhaseProgress`` has its fields.
class _NetworkProgress(TypedDict):
    part: str
    switches: tuple[_SwitchState, ...]

class PhaseNetwork:
    """Switched network of a job, shared by the groups of this process; see ``pccl.phases``."""

    def __init__(
        self,
        ranks: int,
        phases: Sequence[tuple[str, Sequence[tuple[int, int]], bool]],
        has_hosts: bool,
    ) -> None:
        """Create the network for a group.

        Parameters
        ----------
        ranks
            Number of ranks.
        phases
            Name and links of each phase, and whether ranks forward messages in it.
        has_hosts
            Whether ranks that share memory are connected in every phase.
        """
    @property
    def phase(self) -> str:
        """The current phase; empty before the first switch, or if it is unknown."""
    @property
    def generation(self) -> int:
        """The number of the switch that led to the current phase."""
    @property
    def is_in_use(self) -> bool:
        """Whether a group of this process can switch it."""
    @property
    def is_controller(self) -> bool:
        """Whether this process is rank 0 of that group."""
    def switch_phase(
        self,
        phase: str,
        timeout: float | timedelta,
        controller: Controller,
        dry_run: bool,
        discard_candidate: bool,
        progress: ProgressBoard | None = None,
    ) -> _NetworkReport:
        """Switch the network to another phase, with all other ranks.

        Parameters
        ----------
        phase
            Name of the phase.
        timeout
            Maximum seconds until all ranks have called it and no operation is in flight, and
            maximum seconds of each step of the switches.
        controller
            Controller of the switches. Rank 0 switches with it; another rank reads the switches
            with it if rank 0 is lost.
        dry_run
            Only prepare the switch, and stay in the old phase.
        discard_candidate
            As in ``Controller.switch_phase``, on rank 0.
        progress
            Object that receives the progress, on rank 0.

        Returns
        -------
        dict
            Rank 0's report; other ranks get it without the circuits that were read.

        Raises
        ------
        InvalidArgumentError
            A rank has no route in the phase.
        TimeoutError, MismatchError, PeerLostError, UnavailableError, AbortedError
            See ``pccl.switch_phase``.
        """
    def handle(self) -> object:
        """Return a handle of the network for ``pccl._torch``. Raises nothing."""

class ProgressBoard:
    """Progress of a switch of phases, written by the switching thread."""

    def __init__(self) -> None: ...
    def read(self) -> _NetworkProgress:
        """Return the progress: the current step, and the state of each switch."""

class Controller:
    """Controller of the switches of a cluster file; it admits one call at a time."""

    def __init__(self, text: str, name: str) -> None:
        """Read a cluster file, and open its audit log, without connecting to a switch.

        Parameters
        ----------
        text
            Content of the file, as JSON.
        name
            Name of the file in messages.

        Raises
        ------
        InvalidArgumentError
            The file has an error; the message names the place and a correct value.
        """
    @property
    def description(self) -> _ClusterDescription:
        """The devices, switches and phases."""
    @property
    def state(self) -> tuple[str, int, str]:
        """The state after the last call: the phase, the changes so far, and the doubt.

        The phase is the last that was verified; empty before the first. The doubt is the switch
        that could not be verified, and the remedy; empty if there is none.
        """
    def plan(self, source: str, target: str) -> _PlannedNetwork:
        """Return the changes between two phases.

        Parameters
        ----------
        source
            Old phase; empty: nothing is connected.
        target
            New phase.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist.
        UnavailableError
            Another call is under way.
        """
    def switch_phase(
        self,
        phase: str,
        timeout: float | timedelta,
        dry_run: bool,
        adopt: bool,
        discard_candidate: bool,
        progress: ProgressBoard | None = None,
    ) -> _NetworkReport:
        """Switch all devices or none, and return the report.

        Parameters
        ----------
        phase
            Name of the phase.
        timeout
            Maximum seconds of each step; values above one hour are reduced to one hour.
        dry_run
            Only let the switches check the configuration.
        adopt
            Accept the current circuits of the switches as the old state, whatever they are.
        discard_candidate
            Discard changes that others have left in the candidate configurations of switches.
        progress
            Object that receives the progress.

        Returns
        -------
        dict
            Outcome, reason, and the actions of each switch.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist, or the timeout is not above 0.
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError
            A switch is degraded, or cannot be reached; or another call is under way.
        """
    def inspect(self, timeout: float | timedelta) -> _NetworkReading:
        """Read all switches, and return their circuits.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches, above 0.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0.
        UnavailableError
            Another call is under way.
        """
    def adopt(self, timeout: float | timedelta) -> None:
        """Set the current phase to the phase that all switches have.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches.

        Raises
        ------
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError
            Another call is under way.
        """
    def audit(self) -> list[str]:
        """Return the audit log, one JSON object in each line.

        Raises
        ------
        UnavailableError
            Another call is under way.
        """

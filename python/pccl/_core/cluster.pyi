# SPDX-License-Identifier: Apache-2.0
"""Phases of a network, and the controller of its switches."""

from collections.abc import Callable, Sequence
from datetime import timedelta

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
        dry_run: bool,
        transact: Callable[[Callable[[], None]], tuple[bool, str]],
        read_back: Callable[[], bool],
    ) -> tuple[bool, str]:
        """Switch the network to another phase, with all other ranks.

        Parameters
        ----------
        phase
            Name of the phase.
        timeout
            Maximum seconds until all ranks have called it and no operation is in flight.
        dry_run
            Only prepare the switch, and stay in the old phase.
        transact
            Function that reconfigures the switches, on rank 0. It calls its argument when all
            switches are prepared.
        read_back
            Function for another rank if rank 0 is lost: returns whether the switches have that
            phase.

        Returns
        -------
        tuple
            Whether the network was switched (or, in a dry run, prepared), and rank 0's report.

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
    @property
    def text(self) -> str:
        """The progress as JSON: the current step, and the state of each switch."""

class Controller:
    """Controller of the switches of a cluster file. ``pccl.Cluster`` reads its results, JSON."""

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
    def description(self) -> str:
        """The devices, switches and phases, as JSON."""
    @property
    def current(self) -> str:
        """The phase that was last verified; empty before the first."""
    @property
    def generation(self) -> int:
        """The number of changes of circuits."""
    @property
    def degraded(self) -> str:
        """The switch that could not be verified, and the remedy; empty if there is none."""
    def plan(self, source: str, target: str) -> str:
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
        """
    def switch_to(
        self,
        phase: str,
        timeout: float | timedelta,
        dry_run: bool,
        adopt: bool,
        discard_candidate: bool,
        drain: Callable[[], None] | None = None,
        progress: ProgressBoard | None = None,
    ) -> str:
        """Switch all devices or none, and return the outcome.

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
        drain
            Function that is called when all switches are prepared. Its exception ends the switch.
        progress
            Object that receives the progress.

        Returns
        -------
        str
            Outcome, reason, and the actions of each switch, as JSON.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist, or the timeout is not above 0.
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError
            A switch is degraded, or cannot be reached.
        """
    def inspect(self, timeout: float | timedelta) -> str:
        """Read all switches, and return their circuits.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches, above 0.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0.
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
        """
    def inherit(self, timeout: float | timedelta) -> str:
        """Adopt the phase of the switches after they have rolled back a lost controller's changes.

        Parameters
        ----------
        timeout
            Maximum seconds of each step, at most one hour. The switches determine the time of the
            wait before it.

        Returns
        -------
        str
            Adopted phase; empty: nothing is connected.

        Raises
        ------
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError, PeerLostError, TimeoutError
            A switch cannot be read.
        """
    def audit(self) -> list[str]:
        """Return the audit log, one JSON object in each line."""

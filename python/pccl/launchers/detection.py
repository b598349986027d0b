# SPDX-License-Identifier: Apache-2.0
"""Detection of the launcher of this process."""

from __future__ import annotations

import dataclasses

from pccl.errors import InvalidArgumentError
from pccl.launchers import kubernetes, open_mpi, pmi, pmix, slurm, torchrun, variables
from pccl.launchers.launcher import Launcher, Nowhere

__all__ = ["Detection", "detect"]

# The order matters: a launcher inside another one sets the variables that come first here.
_FINDERS = (torchrun.find, pmi.find, pmix.find, open_mpi.find, slurm.find, kubernetes.find)


@dataclasses.dataclass(frozen=True)
class Detection:
    """Launcher of this process, and what was found of others.

    Attributes
    ----------
    launcher
        The launcher, or None: nothing counts several processes, or nothing leads to the others.
    notes
        Clauses about variables that do not suffice.
    """

    launcher: Launcher | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line for ``pccl info`` and the log."""
        found = "no launcher, one rank" if self.launcher is None else str(self.launcher)
        return "; ".join((found, *self.notes))

    def require_meeting(self) -> Launcher | None:
        """Return the launcher if its ranks can meet, or None for a single rank.

        Raises
        ------
        pccl.InvalidArgumentError
            The variables of a launcher count several ranks, and no way to the others was found.
        """
        if self.launcher is None:
            if _counts_several():
                raise InvalidArgumentError(_shortage(self.notes, "start it with one of them"))
            return None
        if self.launcher.size == 1:
            return None
        if isinstance(self.launcher.meeting, Nowhere):
            notes = (f"{self.launcher}", *self.notes)
            raise InvalidArgumentError(_shortage(notes, self.launcher.meeting.advice))
        return self.launcher


def detect() -> Detection:
    """Detect the launcher of this process from its environment.

    Returns
    -------
    Detection
        The first launcher of the order in :mod:`pccl.launchers`, and notes about others.

    Raises
    ------
    pccl.UnavailableError
        A server of the launcher cannot be reached, or its answers are wrong.
    """
    notes: list[str] = []
    for find in _FINDERS:
        launcher = find(notes)
        if launcher is not None:
            return Detection(launcher, tuple(notes))
    return Detection(None, tuple(notes))


def _counts_several() -> bool:
    """Return whether any variable shows that this process is one of several."""
    sizes = variables.first_with_several() is not None or (variables.number("WORLD_SIZE") or 0) > 1
    return sizes or (variables.number("RANK") or 0) > 0


def _shortage(notes: tuple[str, ...], advice: str) -> str:
    found = "; ".join(notes) or _sizes()
    return (
        f"this is one of several processes, and there is no way to the others: {found}; {advice}, "
        'or pass Communicator(rendezvous="none") for one alone'
    )


def _sizes() -> str:
    several = variables.first_with_several()
    if several is None:
        return "WORLD_SIZE without RANK, MASTER_ADDR and MASTER_PORT"
    count = variables.number(several.size)
    return f"{several.size}={count} without {several.rank} ({several.launcher})"

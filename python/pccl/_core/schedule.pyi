# SPDX-License-Identifier: Apache-2.0
"""Schedules, the programs of collectives."""

from typing import TypeAlias

import matplotlib.figure

from pccl._core.types import _Collective, _Verdict
from pccl.results.schedule_steps import Step
from pccl.results.table import Table

class Schedule:
    """Program of a collective: the steps of each rank."""

    @property
    def name(self) -> str:
        """The name of the algorithm."""
    @property
    def collective(self) -> _Collective:
        """The name of the collective."""
    @property
    def ranks(self) -> int:
        """The number of ranks, each of which has its own program."""
    @property
    def root(self) -> int:
        """The root rank; 0 if the collective has none."""
    @property
    def chunks(self) -> int:
        """The number of pieces of each block."""
    @property
    def slots(self) -> int:
        """The number of messages that may be in flight between two ranks."""
    @property
    def aggregation(self) -> int:
        """The requested limit of blocks in one message; 0 if none was requested."""
    @property
    def phases(self) -> tuple[str, ...]:
        """The target phase of each ``switch_phase`` of a lane; usually empty."""
    @property
    def steps(self) -> Table[Step]:
        """The steps of all ranks: a list, which notebooks show as a table."""
    def renamed(self, name: str) -> Schedule:
        """Return the same schedule by another name.

        Parameters
        ----------
        name
            New name; any string.
        """
    def plot(self) -> matplotlib.figure.Figure:
        """Draw ranks over rounds, with an arrow for each message.

        Returns
        -------
        matplotlib.figure.Figure
            Figure in which a message takes one round. Messages that the receiver reduces have
            another colour.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
    def _repr_html_(self) -> str: ...
    def verify(self, *, in_place: bool = False) -> _Verdict:
        """Verify that the schedule computes its collective.

        Parameters
        ----------
        in_place
            Whether input and output are the same buffer.

        Returns
        -------
        dict
            ``rounds``, the length of the longest chain of dependent messages, and
            ``bit_identical``, whether all ranks reduce in the same order.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong; the message names rank, lane, step and chunk.
        """
    def __eq__(self, other: object) -> bool: ...

def algorithms(collective: _Collective) -> list[str]:
    """Return the names of the algorithms for a collective.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist.
    """

def generate(
    algorithm: str,
    collective: _Collective,
    ranks: int,
    *,
    root: int = 0,
    chunks: int | None = None,
    slots: int | None = None,
    aggregation: int = 0,
) -> Schedule:
    """Generate the programs of all ranks.

    Parameters
    ----------
    algorithm
        One of ``algorithms(collective)``.
    collective
        Collective, as for ``algorithms``.
    ranks
        Number of ranks.
    root
        Root rank of broadcast, reduce, gather and scatter.
    chunks
        Number of pieces of each block; None for the algorithm's minimum.
    slots
        Number of messages in flight between two ranks; None for the algorithm's minimum.
    aggregation
        For pat: maximum number of blocks in one message, rounded down to a power of two; 0 for no
        limit. A lower value means more messages and less scratch memory.

    Returns
    -------
    Schedule
        Schedule, not verified yet.

    Raises
    ------
    InvalidArgumentError
        The algorithm or collective does not exist, or does not support these values.
    """

_RawSlices: TypeAlias = list[tuple[str, int, int]]

_RawPort: TypeAlias = tuple[int, int] | None

_RawStep: TypeAlias = tuple[str, _RawSlices, _RawSlices, _RawPort, _RawPort, list[tuple[int, int]]]

_RawProgram: TypeAlias = tuple[int, list[list[_RawStep]]]

def programs_of(schedule: Schedule) -> list[_RawProgram]:
    """Return the steps of a schedule as tuples, as ``schedule_of`` takes them.

    Parameters
    ----------
    schedule
        Any schedule.
    """

def schedule_of(
    name: str,
    collective: str,
    ranks: int,
    root: int,
    chunks: int,
    slots: int,
    programs: list[_RawProgram],
    phases: list[str] = ...,
) -> Schedule:
    """Return the schedule of steps that are given as tuples, without verification.

    Parameters
    ----------
    name, collective, ranks, root, chunks, slots
        Properties of the ``Schedule``.
    programs
        By rank: chunks of scratch, and lanes of steps (action, src, dst, from, to, after). Slices
        are (buffer, offset, count), ports (peer, channel), dependencies (lane, step).
    phases
        Target phase of each ``switch_phase`` of a lane.

    Raises
    ------
    InvalidArgumentError
        The collective, a buffer or an action does not exist.
    """

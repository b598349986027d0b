# SPDX-License-Identifier: Apache-2.0
"""Algorithms step by step, with explicit lanes and dependencies, which chunks cannot express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pccl.lang.building import About, capsule_of, check_protocol
from pccl.lang.geometry import Collective, Geometry, Protocol
from pccl.lang.lowering import SWITCH, Lowered
from pccl.lang.origin import Line, Place, ProgramError, caller
from pccl.lang.trace import check_phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.capsule import Capsule

__all__ = ["Lane", "Slice", "StepRef", "Steps"]


class Slice(NamedTuple):
    """Chunks of a buffer of the rank that runs the step: ``Slice("input", 0, 4)``."""

    buffer: str
    first: int
    chunks: int = 1


class StepRef(NamedTuple):
    """Reference to a step that other steps may wait for."""

    rank: int
    lane: int
    step: int


_Slices: TypeAlias = "Slice | Sequence[Slice] | None"


class Steps:
    """A collective as lanes of steps; ``build`` makes a capsule of it.

    The steps of a lane run in order, the lanes of a rank run concurrently, and a step waits for the
    steps in its ``after``. Messages between two ranks on one channel keep their order; each end of
    a channel belongs to one lane.

    Parameters
    ----------
    collective, ranks, chunks, root, slots, protocol
        As for ``pccl.lang.algorithm``.
    """

    def __init__(
        self,
        collective: Collective,
        *,
        ranks: int,
        chunks: int = 1,
        root: int = 0,
        slots: int = 2,
        protocol: Protocol = "",
    ) -> None:
        self._protocol = check_protocol(protocol)
        self._geometry = Geometry(collective, ranks, chunks, root)
        self._slots = slots
        self._line = caller()
        self._lanes: list[list[list[Any]]] = [[] for _ in range(ranks)]
        self._scratch = [0] * ranks
        self._origins: dict[Place, tuple[Line, ...]] = {}
        self._switches: list[tuple[str, Line]] = []

    def lane(self, rank: int, *, channel: int = 0) -> Lane:
        """Return a new lane of a rank.

        Parameters
        ----------
        rank
            Rank that runs the lane.
        channel
            Channel of the lane's messages.

        Raises
        ------
        ProgramError
            The rank does not exist.
        """
        if not 0 <= rank < self._geometry.ranks:
            raise ProgramError(
                caller(), f"{rank} is no rank; ranks are 0 to {self._geometry.ranks - 1}"
            )
        self._lanes[rank].append([])
        lane = len(self._lanes[rank]) - 1
        for _, line in self._switches:
            self._add_switch(rank, lane, line)
        return Lane(self, rank, lane, channel)

    def switch_phase(self, phase: str) -> None:
        """Switch the network to another phase, after all ranks have completed all steps so far.

        Later steps of all lanes, new lanes included, use the links of that phase.

        Parameters
        ----------
        phase
            Name of the phase in the description of the cluster.

        Raises
        ------
        ProgramError
            ``phase`` is not a valid name.
        """
        line = caller()
        self._switches.append((check_phase(phase), line))
        for rank, lanes in enumerate(self._lanes):
            for lane in range(len(lanes)):
                self._add_switch(rank, lane, line)

    def build(
        self,
        name: str,
        *,
        sizes: str = "..",
        author: str = "",
        licence: str = "",
        note: str = "",
    ) -> Capsule:
        """Return the verified capsule of the steps.

        Parameters
        ----------
        name
            Name of the capsule.
        sizes, author, licence, note
            As for ``pccl.Capsule.of``.

        Raises
        ------
        ProgramError
            The steps are wrong. The message names the line and the steps in conflict.
        """
        programs = list(zip(self._scratch, self._lanes, strict=True))
        lowered = Lowered(programs, self._origins, [phase for phase, _ in self._switches])
        about = About(name, author, licence, note, sizes, self._protocol)
        return capsule_of(lowered, self._geometry, self._slots, about, self._line)

    def _add_switch(self, rank: int, lane: int, line: Line) -> None:
        steps = self._lanes[rank][lane]
        self._origins[rank, lane, len(steps)] = (line,)
        steps.append(SWITCH)

    def _add(self, rank: int, lane: int, step: tuple[Any, ...]) -> StepRef:
        steps = self._lanes[rank][lane]
        self._origins[rank, lane, len(steps)] = (caller(),)
        for buffer, offset, count in (*step[1], *step[2]):
            if buffer == "scratch":
                self._scratch[rank] = max(self._scratch[rank], offset + count)
        steps.append(step)
        return StepRef(rank, lane, len(steps) - 1)


class Lane:
    """Steps of one rank in order; each method adds one. ``Steps.lane`` returns it."""

    def __init__(self, steps: Steps, rank: int, lane: int, channel: int) -> None:
        self._steps = steps
        self._rank = rank
        self._lane = lane
        self._channel = channel

    def nop(self, *, after: _After = None) -> StepRef:
        """Wait for other steps.

        Parameters
        ----------
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("nop", after=after)

    def copy(self, src: _Slices, dst: _Slices, *, after: _After = None) -> StepRef:
        """Copy within the rank.

        Parameters
        ----------
        src
            Source: a slice, or a list of slices that a message gathers.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("copy", src, dst, after=after)

    def reduce(self, src: _Slices, dst: _Slices, *, after: _After = None) -> StepRef:
        """Add ``src`` to ``dst``.

        Parameters
        ----------
        src
            Source: a slice, or a list of slices that a message gathers.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("reduce", src, dst, after=after)

    def send(self, src: _Slices, to: int, *, after: _After = None) -> StepRef:
        """Send to a rank.

        Parameters
        ----------
        src
            Source: a slice, or a list of slices that a message gathers.
        to
            Rank that receives the message.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("send", src, to=to, after=after)

    def recv(self, source: int, dst: _Slices, *, after: _After = None) -> StepRef:
        """Receive from a rank.

        Parameters
        ----------
        source
            Rank that sends the message.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("recv", dst=dst, source=source, after=after)

    def recv_copy_send(
        self, source: int, dst: _Slices, to: int, *, after: _After = None
    ) -> StepRef:
        """Receive from a rank, store the message, and forward it.

        Parameters
        ----------
        source
            Rank that sends the message.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        to
            Rank that receives the message.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("recv_copy_send", dst=dst, source=source, to=to, after=after)

    def recv_reduce(
        self, source: int, dst: _Slices, *, src: _Slices = None, after: _After = None
    ) -> StepRef:
        """Write the received message plus ``src`` to ``dst``; without ``src``, add it to ``dst``.

        Parameters
        ----------
        source
            Rank that sends the message.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        src
            Source: a slice, or a list of slices that a message gathers.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("recv_reduce", src, dst, source=source, after=after)

    def recv_reduce_send(
        self, source: int, src: _Slices, to: int, *, after: _After = None
    ) -> StepRef:
        """Send the sum of the received message and ``src``, and store nothing.

        Parameters
        ----------
        source
            Rank that sends the message.
        src
            Source: a slice, or a list of slices that a message gathers.
        to
            Rank that receives the message.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("recv_reduce_send", src, source=source, to=to, after=after)

    def recv_reduce_copy_send(
        self, source: int, dst: _Slices, to: int, *, src: _Slices = None, after: _After = None
    ) -> StepRef:
        """Run ``recv_reduce``, and send the result.

        Parameters
        ----------
        source
            Rank that sends the message.
        dst
            Destination: a slice, or a list of slices over which a message is scattered.
        to
            Rank that receives the message.
        src
            Source: a slice, or a list of slices that a message gathers.
        after
            Step or steps of other lanes of the rank that must complete first.

        Returns
        -------
        StepRef
            Reference for the ``after`` of other steps.

        Raises
        ------
        ProgramError
            A step in ``after`` belongs to another rank.
        """
        return self._add("recv_reduce_copy_send", src, dst, source=source, to=to, after=after)

    def _add(
        self,
        action: str,
        src: _Slices = None,
        dst: _Slices = None,
        *,
        source: int | None = None,
        to: int | None = None,
        after: _After = None,
    ) -> StepRef:
        ports = [None if peer is None else (peer, self._channel) for peer in (source, to)]
        step = (action, _listed(src), _listed(dst), *ports, self._before(after))
        return self._steps._add(self._rank, self._lane, step)

    def _before(self, after: _After) -> list[tuple[int, int]]:
        steps = [after] if isinstance(after, StepRef) else list(after or ())
        for step in steps:
            if step.rank != self._rank:
                raise ProgramError(
                    caller(), f"a step of rank {self._rank} cannot wait for one of {step.rank}"
                )
        return [(step.lane, step.step) for step in steps]


_After: TypeAlias = "StepRef | Sequence[StepRef] | None"


def _listed(slices: _Slices) -> list[tuple[str, int, int]]:
    found = [slices] if isinstance(slices, Slice) else list(slices or ())
    return [(buffer, offset, count) for buffer, offset, count in found]

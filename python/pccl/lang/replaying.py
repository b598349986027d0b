# SPDX-License-Identifier: Apache-2.0
"""Conversion of a schedule's steps to operations on chunks, as a part of an algorithm."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from pccl import _core
from pccl.lang.geometry import Atom

if TYPE_CHECKING:
    from pccl._core import Schedule
    from pccl.lang.geometry import Buffer
    from pccl.lang.trace import Trace

__all__ = ["replayed"]


_Slices: TypeAlias = "list[tuple[str, int, int]]"  # buffer, first chunk, chunks


def _atoms(slices: _Slices) -> list[Atom]:
    return [
        Atom(cast("Buffer", buffer), index)
        for buffer, first, count in slices
        for index in range(first, first + count)
    ]


class _Step(NamedTuple):
    """Step in the form of ``_core.programs_of``, with its rank."""

    rank: int
    action: str
    src: _Slices
    dst: _Slices
    source: tuple[int, int] | None  # peer and channel
    target: tuple[int, int] | None
    after: list[tuple[int, int]]  # lane and step

    @property
    def sent(self) -> _Slices:
        """Location of the sent message; empty where the step only forwards it."""
        return self.dst if self.source else self.src


@dataclass
class _Message:
    """Chunks in flight, and the positions of the steps that send and receive them."""

    rank: int  # rank that has the chunks
    channel: int
    sent: int
    received: int = -1
    chunks: tuple[Atom, ...] = ()


class _Event(NamedTuple):
    step: _Step
    incoming: _Message | None
    outgoing: _Message | None


def replayed(schedule: Schedule, trace: Trace) -> None:
    """Record the operations of a valid schedule that switches no phases.

    Each message becomes an operation at its receipt. If its chunks are overwritten before then, the
    message goes through scratch of its receiver.

    Parameters
    ----------
    schedule
        Schedule with the same collective, ranks, chunks and root as the trace.
    trace
        Trace that receives the operations.
    """
    _Writer(trace, _in_order(schedule)).write()


def _in_order(schedule: Schedule) -> list[_Event]:
    """Return all steps in a valid sequential order."""
    lanes = {
        (rank, lane): [_Step(rank, *step) for step in steps]
        for rank, (_, lanes) in enumerate(_core.programs_of(schedule))
        for lane, steps in enumerate(lanes)
    }
    done = dict.fromkeys(lanes, 0)
    queues: dict[tuple[int, int, int], collections.deque[_Message]] = collections.defaultdict(
        collections.deque
    )
    events: list[_Event] = []
    while waiting := [place for place, steps in lanes.items() if done[place] < len(steps)]:
        before = len(events)
        for place in waiting:
            step = lanes[place][done[place]]
            if any(done[step.rank, lane] <= index for lane, index in step.after):
                continue
            incoming = outgoing = None
            if step.source:
                queue = queues[step.source[0], step.rank, step.source[1]]
                if not queue:
                    continue
                incoming = queue.popleft()
                incoming.received = len(events)
            if step.target:
                outgoing = _Message(step.rank, step.target[1], len(events))
                receiver, channel = step.target
                queues[step.rank, receiver, channel].append(outgoing)
            events.append(_Event(step, incoming, outgoing))
            done[place] += 1
        assert len(events) > before, "the schedule is wrong"
    return events


class _Writer:
    """Converter of steps to operations. Each write to scratch uses new chunks."""

    def __init__(self, trace: Trace, events: list[_Event]) -> None:
        self._trace = trace
        self._events = events
        self._scratch: dict[tuple[int, int], Atom] = {}  # by rank and the schedule's number
        self._written: dict[tuple[int, Atom], list[int]] = collections.defaultdict(list)
        for at, event in enumerate(events):
            for place in self._memory(event.step.rank, event.step.dst):
                self._written[place].append(at)

    def write(self) -> None:
        for event in self._events:
            chunks = self._perform(event)
            if event.outgoing is None:
                continue
            event.outgoing.chunks = chunks
            if self._is_overwritten(event.step, event.outgoing):
                self._stage(event.step, event.outgoing)

    def _perform(self, event: _Event) -> tuple[Atom, ...]:
        """Record a step except its send; return the chunks that it sends."""
        step, incoming = event.step, event.incoming
        if step.action == "nop":
            return ()
        own = self._read(step.rank, step.src)
        if step.action == "send":
            return own
        operands = None
        if "reduce" in step.action:
            operands = own if incoming and own else self._read(step.rank, step.dst)
        chunks = incoming.chunks if incoming else own
        writes = self._places(step.rank, step.dst) or self._spares(len(chunks))
        self._trace.add(
            incoming.rank if incoming else step.rank,
            chunks,
            step.rank,
            writes,
            operands=operands,
            channel=incoming.channel if incoming else 0,
        )
        return writes

    def _stage(self, step: _Step, message: _Message) -> None:
        assert step.target
        receiver, channel = step.target
        spares = self._spares(len(message.chunks))
        self._trace.add(
            message.rank, message.chunks, receiver, spares, operands=None, channel=channel
        )
        message.rank, message.chunks = receiver, spares

    def _is_overwritten(self, step: _Step, message: _Message) -> bool:
        return any(
            message.sent < at < message.received
            for place in self._memory(step.rank, step.sent)
            for at in self._written[place]
        )

    def _memory(self, rank: int, slices: _Slices) -> list[tuple[int, Atom]]:
        """Return the chunks of input and output in canonical in-place form."""
        return [
            (rank, self._trace.geometry.in_place(rank, atom))
            for atom in _atoms(slices)
            if atom.buffer != "scratch"
        ]

    def _read(self, rank: int, slices: _Slices) -> tuple[Atom, ...]:
        return tuple(
            self._scratch[rank, atom.chunk] if atom.buffer == "scratch" else atom
            for atom in _atoms(slices)
        )

    def _places(self, rank: int, slices: _Slices) -> tuple[Atom, ...]:
        for atom in _atoms(slices):
            if atom.buffer == "scratch":
                self._scratch[rank, atom.chunk] = self._trace.spare()
        return self._read(rank, slices)

    def _spares(self, count: int) -> tuple[Atom, ...]:
        return tuple(self._trace.spare() for _ in range(count))

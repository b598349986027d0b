# SPDX-License-Identifier: Apache-2.0
"""Lowering of operations to the steps of each rank.

Each channel of a rank becomes a lane. Operations run in the order of their depth, the longest chain
of operations that they depend on, so that independent operations run concurrently; at one depth,
sends come first. A step that forwards a message is merged with the step that received it, and a
value without other readers is not stored. Where the merged form cannot run with the available
slots, the verifier rejects it, and the plain form is used: one step for each end of each operation,
in one order that all ranks follow, which cannot deadlock. At a switch of phases all lanes wait for
each other.
"""

from __future__ import annotations

import bisect
import collections
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pccl.lang.geometry import Atom, Geometry
    from pccl.lang.origin import Line, Place
    from pccl.lang.trace import Operation, Trace

__all__ = ["SWITCH", "Lowered", "lower"]

_Slices: TypeAlias = "list[tuple[str, int, int]]"

# Order of steps within a depth.
_SENDS, _RECEIVES, _STAYS = range(3)


@dataclass
class Lowered:
    """Programs in the form of ``pccl._core.schedule_of``, and the source lines of steps."""

    programs: list[Any]
    origins: dict[Place, tuple[Line, ...]]
    phases: list[str] = field(default_factory=list)  # target of each switch


@dataclass
class _Step:
    """One end of an operation, both ends on one rank, or a merged pair of steps."""

    action: str
    operation: Operation
    depth: int
    reads: tuple[Atom, ...] = ()
    operands: tuple[Atom, ...] | None = None  # second summands; None: no reduction
    writes: tuple[Atom, ...] = ()
    source: int | None = None
    target: int | None = None
    lines: list[Line] = field(default_factory=list)


def lower(trace: Trace, *, fused: bool) -> Lowered:
    """Return the steps of a trace; ``fused`` selects the faster form."""
    depths = _depths(trace)
    steps = _steps_by_rank(trace, depths, fused)
    lowered = Lowered([], {}, [switch.phase for switch in trace.switches])
    for rank in range(trace.geometry.ranks):
        parts = steps[rank]
        if fused:
            parts = [_fused(part, trace) for part in parts]
        _emit(lowered, rank, parts, trace)
    return lowered


def _depths(trace: Trace) -> list[int]:
    """Return, by operation, the number of messages on the longest path to its end.

    An operation comes after the writes of the values that it reads and before their next overwrite,
    whether input and output share memory or not.
    """
    depths: list[int] = []
    written: dict[tuple[int, Atom], int] = {}
    read: dict[tuple[int, Atom], int] = collections.defaultdict(int)
    for operation in trace.operations:
        reads, writes = _touched(operation, trace.geometry)
        before = [written.get(place, 0) for place in (*reads, *writes)]
        before += [read[place] for place in writes]
        depth = max(before) + (0 if operation.is_local else 1)
        depths.append(depth)
        for place in reads:
            read[place] = max(read[place], depth)
        for place in writes:
            written[place] = depth
    return depths


def _touched(
    operation: Operation, geometry: Geometry
) -> tuple[list[tuple[int, Atom]], list[tuple[int, Atom]]]:
    def at(rank: int, atoms: Iterable[Atom]) -> list[tuple[int, Atom]]:
        return [(rank, geometry.in_place(rank, atom)) for atom in atoms]

    reads = at(operation.source, operation.reads)
    reads += at(operation.target, operation.operands or ())
    return reads, at(operation.target, operation.writes)


def _steps_by_rank(trace: Trace, depths: list[int], fused: bool) -> list[list[list[_Step]]]:
    """Return the steps of each rank, from one switch of phases to the next."""
    keyed: list[list[list[tuple[tuple[int, int, int], _Step]]]] = [
        [[] for _ in range(len(trace.switches) + 1)] for _ in range(trace.geometry.ranks)
    ]
    first_behind = [switch.index for switch in trace.switches]
    for operation in trace.operations:
        depth = depths[operation.index]
        part = bisect.bisect_right(first_behind, operation.index)
        for rank, phase, step in _ends(operation, depth):
            key = (depth, phase, operation.index) if fused else (depth, operation.index, phase)
            keyed[rank][part].append((key, step))
    return [
        [[step for _, step in sorted(pairs, key=lambda pair: pair[0])] for pairs in parts]
        for parts in keyed
    ]


def _ends(operation: Operation, depth: int) -> list[tuple[int, int, _Step]]:
    """Return the rank, phase and step of each end."""
    if operation.is_local:
        return [(operation.source, _STAYS, step) for step in _local(operation, depth)]
    send = _Step("send", operation, depth, reads=operation.reads, target=operation.target)
    receive = _Step(
        "recv" if operation.operands is None else "recv_reduce",
        operation,
        depth,
        operands=operation.operands,
        writes=operation.writes,
        source=operation.source,
    )
    send.lines, receive.lines = [operation.line], [operation.line]
    return [(operation.source, _SENDS, send), (operation.target, _RECEIVES, receive)]


def _local(operation: Operation, depth: int) -> list[_Step]:
    """Return the steps of an operation within a rank: a reduction adds to its destination."""
    reads, writes, operands = operation.reads, operation.writes, operation.operands
    lines = [operation.line]
    if operands is None:
        return [_Step("copy", operation, depth, reads=reads, writes=writes, lines=lines)]
    add = _Step(
        "reduce", operation, depth, reads=reads, operands=writes, writes=writes, lines=lines
    )
    if operands == writes:
        return [add]
    return [_Step("copy", operation, depth, reads=operands, writes=writes, lines=lines), add]


def _fused(steps: list[_Step], trace: Trace) -> list[_Step]:
    """Merge each send of a message that was just received into the receiving step."""
    result: list[_Step] = []
    waiting: dict[tuple[int, tuple[Atom, ...]], int] = {}  # by channel and chunks: index
    last_send: dict[tuple[int, int], int] = {}  # by channel and peer: index
    for step in steps:
        channel = step.operation.channel
        at = waiting.get((channel, step.reads)) if step.action == "send" else None
        if at is not None and step.target is not None:
            receive = result[at]
            passes = last_send.get((channel, step.target), -1) > at
            if not passes and step.depth == receive.depth + 1 and receive.target is None:
                _send_on(receive, step, trace)
                last_send[channel, step.target] = at
                continue
        for key in [key for key in waiting if set(key[1]) & set(step.writes)]:
            del waiting[key]
        if step.source is not None:
            waiting[channel, step.writes] = len(result)
        if step.target is not None:
            last_send[channel, step.target] = len(result)
        result.append(step)
    return result


def _send_on(receive: _Step, send: _Step, trace: Trace) -> None:
    receive.target = send.target
    receive.lines.append(send.operation.line)
    if receive.action == "recv":
        receive.action = "recv_copy_send"
    elif _is_read_once(receive.operation, trace):
        receive.action = "recv_reduce_send"
    else:
        receive.action = "recv_reduce_copy_send"


def _is_read_once(operation: Operation, trace: Trace) -> bool:
    """Return whether one other operation reads the written chunks, and none of them is a result."""
    rank = operation.target
    for atom, version in zip(operation.writes, _versions_written(operation, trace), strict=True):
        is_last = version == trace.version((rank, atom))
        if len(trace.readers[(rank, atom), version]) != 1 or (is_last and atom.buffer == "output"):
            return False
    return True


def _versions_written(operation: Operation, trace: Trace) -> list[int]:
    return [trace.written[operation.index, atom] for atom in operation.writes]


class _Scratch:
    """Allocator of scratch for chunks that have no number yet.

    A chunk keeps its index modulo the chunks of a block, because chunks of a block differ in
    length.
    """

    def __init__(self, rank: int, trace: Trace) -> None:
        self._rank = rank
        self._trace = trace
        self._chunks = trace.geometry.chunks
        named = -(-trace.scratch[rank] // self._chunks)
        self._rows: dict[int, int] = collections.defaultdict(lambda: named)
        self._given: dict[Atom, int] = {}
        self.size = trace.scratch[rank]

    def slices(self, atoms: Iterable[Atom]) -> _Slices:
        """Return the chunks as runs of (buffer, first, count)."""
        runs: _Slices = []
        for atom in atoms:
            buffer, index = ("scratch", self._place(atom)) if atom.buffer == "auto" else atom
            if runs and runs[-1][0] == buffer and runs[-1][1] + runs[-1][2] == index:
                runs[-1] = (buffer, runs[-1][1], runs[-1][2] + 1)
            else:
                runs.append((buffer, index, 1))
        return runs

    def _place(self, atom: Atom) -> int:
        if atom not in self._given:
            home = self._trace.homes[self._rank, atom]
            place = self._rows[home.chunk] * self._chunks + home.chunk
            self._rows[home.chunk] += 1
            self._given[atom] = place
            self.size = max(self.size, place + 1)
        return self._given[atom]


class _Order:
    """Dependencies of steps on other lanes of the same rank."""

    def __init__(self, rank: int, geometry: Geometry) -> None:
        self._rank = rank
        self._geometry = geometry
        self._writer: dict[Atom, tuple[int, int]] = {}
        self._readers: dict[Atom, list[tuple[int, int]]] = collections.defaultdict(list)
        self._known: dict[tuple[int, int], int] = {}  # by lane and other lane: last step waited for

    def enter(self, lane: int, index: int, step: _Step, read: Iterable[Atom]) -> _After:
        """Record a step and return the (lane, step) pairs that it must wait for."""
        reads = {self._geometry.in_place(self._rank, atom) for atom in read}
        stores = step.action != "recv_reduce_send"
        writes = (
            {self._geometry.in_place(self._rank, atom) for atom in step.writes} if stores else set()
        )
        before = [self._writer[atom] for atom in reads | writes if atom in self._writer]
        before += [reader for atom in writes for reader in self._readers[atom]]
        for atom in reads:
            self._readers[atom].append((lane, index))
        for atom in writes:
            self._writer[atom] = (lane, index)
            self._readers[atom] = []
        return self._unknown(lane, before)

    def _unknown(self, lane: int, before: list[tuple[int, int]]) -> _After:
        last: dict[int, int] = {}
        for other, step in before:
            if other != lane:
                last[other] = max(step, last.get(other, -1))
        after = []
        for other, step in sorted(last.items()):
            if self._known.get((lane, other), -1) < step:
                self._known[lane, other] = step
                after.append((other, step))
        return after


_After: TypeAlias = "list[tuple[int, int]]"


SWITCH: Any = ("switch_phase", [], [], None, None, [])


def _emit(lowered: Lowered, rank: int, parts: list[list[_Step]], trace: Trace) -> None:
    channels = dict.fromkeys(step.operation.channel for part in parts for step in part)
    lanes = {channel: lane for lane, channel in enumerate(channels)}
    program: list[list[Any]] = [[] for _ in lanes]
    scratch = _Scratch(rank, trace)
    for number, part in enumerate(parts):
        if number > 0:
            _emit_switch(lowered, rank, program, trace.switches[number - 1].line)
        order = _Order(rank, trace.geometry)  # a switch waits for all earlier steps
        for step in part:
            channel = step.operation.channel
            lane = lanes[channel]
            index = len(program[lane])
            after = order.enter(lane, index, step, (*step.reads, *(step.operands or ())))
            program[lane].append(_raw(step, scratch, channel, after))
            lowered.origins[rank, lane, index] = tuple(step.lines)
    lowered.programs.append((scratch.size, program))


def _emit_switch(lowered: Lowered, rank: int, program: list[list[Any]], line: Line) -> None:
    for lane, steps in enumerate(program):
        lowered.origins[rank, lane, len(steps)] = (line,)
        steps.append(SWITCH)


def _raw(step: _Step, scratch: _Scratch, channel: int, after: _After) -> Any:
    src = step.reads
    dst = step.writes
    if step.source is not None:
        # A receiving step reads its summands; the slices are omitted where they equal dst.
        src = step.operands or ()
        if src == dst and step.action != "recv_reduce_send":
            src = ()
    if step.action == "recv_reduce_send":
        dst = ()
    ports = [None if peer is None else (peer, channel) for peer in (step.source, step.target)]
    return (step.action, scratch.slices(src), scratch.slices(dst), *ports, after)

# SPDX-License-Identifier: Apache-2.0
"""Flight records: the last operations of a process, and their analysis over all ranks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Operation",
    "Record",
    "SessionEvent",
    "SessionRecord",
    "SessionTransfer",
    "Wait",
    "explain",
    "explain_sessions",
    "flight_record",
]

_FEW = 3
_MANY = 64  # ranks that a sentence names


def flight_record() -> dict[str, typing.Any]:
    """Return the last 2000 operations of this process's groups, and the events of its sessions.

    ``docs/reference/failure.md`` describes the fields. Operations that run during the call may be
    missing.
    """
    from pccl import _core

    record: dict[str, typing.Any] = json.loads(_core.flight_record_json())
    return record


@dataclasses.dataclass(frozen=True)
class Operation:
    """Collective in a record."""

    sequence: int
    text: str
    state: str
    issued_s: float  # wall clock
    blamed: int | None


@dataclasses.dataclass(frozen=True)
class Wait:
    """Wait of a kernel for another rank."""

    operation: str
    sequence: int | None  # of a collective that the record still contains
    peer: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Record:
    """Record of one process for one group."""

    source: str
    group: str
    rank: int
    size: int
    written_s: float  # wall clock
    operations: tuple[Operation, ...]
    device: str = "cpu"  # or "cuda"
    waits: tuple[Wait, ...] = ()

    @property
    def called(self) -> int:
        """The sequence number of the last collective; 0 if there was none."""
        return max((operation.sequence for operation in self.operations), default=0)

    def at(self, sequence: int) -> Operation | None:
        """Return the collective with a sequence number; None if the record does not contain it."""
        found = [operation for operation in self.operations if operation.sequence == sequence]
        return found[-1] if found else None


@dataclasses.dataclass(frozen=True)
class SessionRecord:
    """Record of one session: its lost or refused connections, and its pending transfers."""

    source: str
    session: str
    events: tuple[SessionEvent, ...]
    under_way: tuple[SessionTransfer, ...]


@dataclasses.dataclass(frozen=True)
class SessionEvent:
    """Event of a session: lost, displaced or refused."""

    what: str
    seconds: float  # before the record was written


@dataclasses.dataclass(frozen=True)
class SessionTransfer:
    """Transfer that has not ended."""

    text: str
    seconds: float  # since it was posted


def explain_sessions(records: Iterable[SessionRecord]) -> list[str]:
    """Describe the pending transfers and last errors of each session, in one paragraph each."""
    return [_explain_session(record) for record in records if record.events or record.under_way]


def _explain_session(record: SessionRecord) -> str:
    sentences = [f"Session {record.session} ({record.source}):"]
    oldest = record.under_way[:_FEW]
    if record.under_way:
        count = len(record.under_way)
        waits = "; ".join(f"{each.text}, for {each.seconds:.1f} s" for each in oldest)
        sentences.append(
            f"{count} {'transfer is' if count == 1 else 'transfers are'} under way: {waits}"
            f"{f'; and {count - _FEW} more' if count > _FEW else ''}."
        )
    sentences.extend(f"{each.seconds:.1f} s before: {each.what}." for each in record.events[-_FEW:])
    return " ".join(sentences)


def explain(records: Iterable[Record]) -> list[str]:
    """Describe the lagging ranks of each group of CPUs or GPUs, in one paragraph each."""
    groups: dict[tuple[str, int, str], dict[int, Record]] = {}
    for record in records:
        groups.setdefault((record.group, record.size, record.device), {})[record.rank] = record
    return [_explain_group(*group, ranks) for group, ranks in sorted(groups.items())]


def _explain_group(name: str, size: int, device: str, ranks: dict[int, Record]) -> str:
    sentences = [f"Group {name} of {size} {'GPUs' if device == 'cuda' else 'ranks'}:"]
    count = size - len(ranks)
    who = _names(sorted(ranks)) if count > 0 else "all"
    if count > 0:
        missing = list(itertools.islice((r for r in range(size) if r not in ranks), _MANY))
        more = f" and {count - _MANY} more" if count > _MANY else ""
        sentences.append(f"there is no record of {_names(missing)}{more};")
    sentences.extend(_explain_waits(ranks) or _explain_calls(ranks, who))
    blamed = {op.blamed for r in ranks.values() if (op := r.at(r.called)) and op.blamed is not None}
    if blamed:
        sentences.append(f"The ranks blame {_names(sorted(blamed))}.")
    return " ".join(sentences)


def _explain_waits(ranks: dict[int, Record]) -> list[str]:
    """Describe the waits of GPUs for other ranks; an empty list if there is none."""
    waiting: dict[tuple[str, int], list[int]] = {}
    for rank, record in sorted(ranks.items()):
        for wait in record.waits:
            waiting.setdefault((wait.operation, wait.peer), []).append(rank)
    sentences = []
    for (operation, peer), who in waiting.items():
        waits = [
            wait
            for rank in who
            for wait in ranks[rank].waits
            if (wait.operation, wait.peer) == (operation, peer)
        ]
        longest = max(wait.seconds for wait in waits)
        sentences.append(
            f"the {'GPU' if len(who) == 1 else 'GPUs'} of {_names(who)}"
            f" {'waits' if len(who) == 1 else 'wait'} in {operation} for rank {peer}, for"
            f" {longest:.1f} s;{_where_is(ranks.get(peer), waits[0])}"
        )
    different = _different(ranks)
    return [*sentences, different] if sentences and different else sentences


def _where_is(awaited: Record | None, wait: Wait) -> str:
    if awaited is None:
        return " it has left no record."
    if awaited.waits:
        return f" rank {awaited.rank} waits itself."
    if wait.sequence is not None and awaited.called < wait.sequence:
        return f" {_lag([awaited.rank], {awaited.rank: awaited})}."
    called = awaited.at(wait.sequence) if wait.sequence is not None else None
    if called is None or called.state not in ("launched", "queued"):
        return f" the GPU of rank {awaited.rank} is not in it."
    return (
        f" rank {awaited.rank} has called it, and its GPU has not begun it: something else in"
        " its stream comes before."
    )


def _explain_calls(ranks: dict[int, Record], who: str) -> list[str]:
    """Describe the last calls of the ranks; ``who`` names the ranks with a record."""
    last = max(record.called for record in ranks.values())
    if last == 0:
        return ["no collective was called."]
    front = next(record for record in ranks.values() if record.called == last)
    operation = front.at(last)
    assert operation is not None
    behind = sorted(rank for rank, record in ranks.items() if record.called < last)
    different = _different(ranks)
    if different:
        return [different]
    if behind:
        there = sorted(set(ranks) - set(behind))
        waited = max(ranks[rank].written_s for rank in there) - operation.issued_s
        return [
            f"{_names(there)} {_are(there)} in {operation.text}, for {waited:.1f} s;"
            f" {_lag(behind, ranks)}."
        ]
    verb = "has" if len(ranks) == 1 else "have"
    return [f"{who} {verb} called {operation.text}{_how_far(ranks, last)}."]


def _how_far(ranks: dict[int, Record], last: int) -> str:
    states = {rank: op.state for rank, record in ranks.items() if (op := record.at(last))}
    open_ = sorted(rank for rank, state in states.items() if state in ("queued", "started"))
    if open_:
        return f"; {_names(open_)} {_are(open_)} in it"
    if any(state in ("launched", "captured") for state in states.values()):
        return ", and no GPU waits for another"
    return ", and it has ended"


def _different(ranks: dict[int, Record]) -> str:
    """Describe the first collective that differs between ranks; empty if there is none."""
    recorded = {operation.sequence for record in ranks.values() for operation in record.operations}
    for sequence in sorted(recorded):
        texts: dict[str, list[int]] = {}
        for rank, record in sorted(ranks.items()):
            operation = record.at(sequence)
            if operation is not None:
                texts.setdefault(_without_pairs(operation.text), []).append(rank)
        if len(texts) > 1:
            sides = "; ".join(f"{_names(who)} called {text}" for text, who in texts.items())
            return f"the programs differ at collective {sequence}: {sides}."
    return ""


def _without_pairs(text: str) -> str:
    """Drop the lengths of collectives in which only pairs of ranks agree on lengths."""
    return text.split(" (")[0] if text.startswith(("all_to_all", "gather", "scatter")) else text


def _lag(behind: list[int], ranks: dict[int, Record]) -> str:
    parts = []
    for rank in behind:
        called = ranks[rank].called
        operation = ranks[rank].at(called)
        what = f"{operation.text}, {operation.state}" if operation else "nothing yet"
        parts.append(f"rank {rank} has not called it: its last is {what}")
    return "; ".join(parts)


def _names(ranks: list[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def _are(ranks: list[int]) -> str:
    return "is" if len(ranks) == 1 else "are"

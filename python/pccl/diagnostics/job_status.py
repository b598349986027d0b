# SPDX-License-Identifier: Apache-2.0
"""Status query of a running job: current operation, duration and awaited ranks per process.

The thread that accepts connections answers, so a process answers even if its Python hangs.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import time
import typing

from pccl._internal.time_limits import limit_of
from pccl.diagnostics import flight, flight_files, ledger
from pccl.diagnostics.usage import (
    CpuTimes,
    Launches,
    Usage,
    cpu_times_of,
    launches_of,
    usage_of,
)
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Job", "Process", "RepeatedQuery", "Seat", "Unheard", "query_job", "query_ledger"]

_AT_ONCE = 16
_MOST_ANSWERS = 1 << 13  # per process
# A thread that computes within a collective holds its group for moments.
_MEMBER_TRIES = 5
_MEMBER_PAUSE_S = 0.02
# Errors of reading malformed JSON.
_MALFORMED = (
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)

_Json: typing.TypeAlias = dict[str, typing.Any]
_Request: typing.TypeAlias = "Callable[[str, bytes, int, float], bytes]"


@dataclasses.dataclass(frozen=True)
class Seat:
    """State of one rank of a group, as the rank reports it."""

    group: str
    device: str  # "cpu" or "cuda"
    rank: int
    size: int
    key: str  # key of the group, for a query of its members; empty on GPUs
    operation: str  # operation in progress; empty: none
    last: str  # last collective; empty: none
    seconds: float | None  # since the start of the operation, or the end of the last one
    awaited: tuple[int, ...]  # awaited ranks
    broken: str  # reason of the group's failure here; empty: none
    usage: Usage | None = None  # counters of its operations; None: on GPUs
    launches: Launches | None = None  # None: on host memory

    @property
    def identity(self) -> tuple[str, str]:
        """Identity of its group: several groups may have the same name."""
        return self.key or self.group, self.device


@dataclasses.dataclass(frozen=True)
class Process:
    """Process that answered the query."""

    host: str
    pid: int
    door: str  # address that answered
    seats: tuple[Seat, ...]
    records: tuple[flight.Record, ...]  # one per seat
    cpu: CpuTimes | None = None


@dataclasses.dataclass(frozen=True)
class Unheard:
    """Process that did not answer the query."""

    name: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Job:
    """Answers of all processes."""

    processes: tuple[Process, ...]
    unheard: tuple[Unheard, ...]

    def require_answer(self) -> None:
        """Raise ValueError, with the first reason, if no process answered."""
        if not self.processes:
            raise ValueError(self.unheard[0].reason)

    def explain(self) -> list[str]:
        """Return one paragraph per group on the ranks that are behind, and their operations."""
        groups: dict[tuple[str, str], list[flight.Record]] = {}
        for process in self.processes:
            for seat, record in zip(process.seats, process.records, strict=True):
                groups.setdefault(seat.identity, []).append(record)
        return [line for records in groups.values() for line in flight.explain(records)]

    def groups(self) -> list[list[tuple[Seat, Process]]]:
        """Return the answering ranks of each group, in rank order."""
        groups: dict[tuple[str, str], list[tuple[Seat, Process]]] = {}
        for process in self.processes:
            for seat in process.seats:
                groups.setdefault(seat.identity, []).append((seat, process))
        return [sorted(group, key=lambda member: member[0].rank) for group in groups.values()]


def query_job(processes: Iterable[tuple[str, ...]], timeout_s: float) -> Job:
    """Query processes, and all other members of their groups.

    Parameters
    ----------
    processes
        Addresses of each process, in the form of ``_core.request_status``.
    timeout_s
        Maximum time for each answer, in seconds.

    Raises
    ------
    InvalidArgumentError
        ``timeout_s`` is negative or NaN.
    """
    survey = _Survey(limit_of(timeout_s, "timeout_s"))
    survey.ask([_Member(doors[0], doors) for doors in processes])
    heard = {(process.host, process.pid): process for process in survey.heard}
    return Job(tuple(heard.values()), tuple(survey.unheard))


class RepeatedQuery:
    """Queries a job, and again the processes that have answered once, as well as new ones.

    A group that is held does not list its members.

    Parameters
    ----------
    processes
        Addresses of each process, as for ``query_job``.
    timeout_s
        Maximum time for each answer, in seconds.
    """

    def __init__(self, processes: Iterable[tuple[str, ...]], timeout_s: float) -> None:
        self._doors = dict.fromkeys(processes)
        self._timeout_s = timeout_s

    def __call__(self) -> Job:
        """Query the job now. Raises as ``query_job``."""
        job = query_job(self._doors, self._timeout_s)
        known = {door for doors in self._doors for door in doors}
        self._doors.update(dict.fromkeys((p.door,) for p in job.processes if p.door not in known))
        return job


def query_ledger(job: Job, timeout_s: float) -> ledger.Ledger:
    """Query the history of the counters of all ranks that have answered.

    A rank that does not answer this time is left out.

    Parameters
    ----------
    job
        The answers of ``query_job``.
    timeout_s
        Maximum time for each answer, in seconds.
    """
    members = [
        (seat, process)
        for process in job.processes
        for seat in process.seats
        if seat.key and seat.usage is not None
    ]
    limit_s = limit_of(timeout_s, "timeout_s")
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda member: _record_at(member[0], member[1], limit_s), members)
        return ledger.merged([ledger.Ledger(tuple(each for each in found if each is not None))])


def _record_at(seat: Seat, process: Process, timeout_s: float) -> ledger.Record | None:
    from pccl import _core

    reports: list[_Json] = []
    try:
        key = bytes.fromhex(seat.key)
        for _, answer in _answers(process.door, key, timeout_s, _core.request_history):
            reports += answer["windows"]
        windows = ledger.windows_of(reports)
    except (Error, *_MALFORMED):
        return None
    return ledger.Record(
        seat.group, seat.key, seat.size, seat.rank, process.host, process.pid, windows
    )


@dataclasses.dataclass(frozen=True)
class _Member:
    name: str
    doors: tuple[str, ...]  # the nearest first


class _Survey:
    """Traversal from processes to the other members of their groups."""

    def __init__(self, timeout_s: float) -> None:
        self.heard: list[Process] = []
        self.unheard: list[Unheard] = []
        self._timeout_s = timeout_s
        self._known: set[str] = set()  # addresses of queried processes
        self._listed: set[str] = set()  # keys of groups with known members

    def ask(self, members: list[_Member]) -> None:
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            while members:
                self._known.update(door for member in members for door in member.doors)
                heard = []
                for answer in pool.map(self._ask, members):
                    if isinstance(answer, Process):
                        heard.append(answer)
                    else:
                        self.unheard.append(answer)
                self.heard += heard
                members = [member for process in heard for member in self._further(process)]

    def _ask(self, member: _Member) -> Process | Unheard:
        reason = "it listens nowhere"
        for door in member.doors:
            try:
                return _process_at(door, self._timeout_s)
            except (Error, ValueError) as error:
                reason = _in_words(error)
        return Unheard(member.name, reason)

    def _further(self, process: Process) -> Iterator[_Member]:
        """Yield the members of its groups that were not queried yet."""
        for seat in process.seats:
            if not seat.key or seat.key in self._listed:
                continue
            try:
                members = self._listed_members(seat, process.door)
            except (Error, ValueError):  # the process has ended; others may list its members
                continue
            if members:
                self._listed.add(seat.key)
            for member in members:
                if self._known.isdisjoint(member.doors):
                    self._known.update(member.doors)
                    yield member

    def _listed_members(self, seat: Seat, door: str) -> list[_Member]:
        """Return the members of a group; none if it is held each time, or being made."""
        for _ in range(_MEMBER_TRIES):
            members = list(_members_of(seat, door, self._timeout_s))
            if members:
                return members
            time.sleep(_MEMBER_PAUSE_S)
        return []


def _in_words(error: Exception) -> str:
    if "prove the secret" not in str(error):
        return str(error)
    if os.environ.get("PCCL_SECRET_FILE"):
        return f"{error}; is PCCL_SECRET_FILE the job's?"
    return (
        f"{error}; set PCCL_SECRET_FILE as the job does. A job without one answers its own user"
        " alone, on its own host, and only if it has shared memory (PCCL_TRANSPORTS):"
        " pccl status PID"
    )


def _answers(
    door: str, group: bytes, timeout_s: float, request: _Request | None = None
) -> Iterator[tuple[bytes, _Json]]:
    """Yield the answers that make up a list, each as raw text and parsed."""
    from pccl import _core

    request = request or _core.request_status
    first = 0
    for _ in range(_MOST_ANSWERS):
        text = request(door, group, first, timeout_s)
        try:
            answer = json.loads(text)
            following = answer["next"]
        except _MALFORMED as error:
            raise _unreadable(door, error) from None
        yield text, answer
        if not isinstance(following, int) or following <= first:
            return
        first = following


def _unreadable(door: str, error: Exception) -> ValueError:
    return ValueError(f"the answer from {door} cannot be read ({error!r})")


def _process_at(door: str, timeout_s: float) -> Process:
    seats: list[Seat] = []
    records: list[flight.Record] = []
    name = ("", 0)
    cpu = None
    for text, answer in _answers(door, b"", timeout_s):
        try:
            records += flight_files.parse(door, text).groups
            seats += [_seat(group, answer) for group in answer["groups"]]
            name = (str(answer["host"]), int(answer["pid"]))
            cpu = cpu_times_of(answer.get("cpu"))
        except _MALFORMED as error:
            raise _unreadable(door, error) from None
    return Process(
        host=name[0],
        pid=name[1],
        door=door,
        seats=tuple(seats),
        records=tuple(records),
        cpu=cpu,
    )


def _seat(group: _Json, answer: _Json) -> Seat:
    entries = [entry for entry in answer["entries"] if entry["group"] == group["id"]]
    collectives = [entry for entry in entries if "sequence" in entry]
    seat = Seat(
        group=str(group["name"]),
        device=str(group["device"]),
        rank=int(group["rank"]),
        size=int(group["size"]),
        key=str(group.get("key", "")),
        operation="",
        last=str(collectives[-1]["operation"]) if collectives else "",
        seconds=_since((entry["finished_ns"] for entry in entries), answer),
        awaited=tuple(int(rank) for rank in group.get("awaited", ())),
        broken=str(group.get("broken", "")),
        usage=usage_of(group.get("usage")),
        launches=launches_of(group.get("launches")),
    )
    if waits := group.get("waits"):
        return dataclasses.replace(
            seat,
            operation=str(waits[0]["operation"]),
            seconds=float(waits[0]["seconds"]),
            awaited=tuple(sorted({int(wait["peer"]) for wait in waits})),
        )
    under_way = [entry for entry in entries if entry["state"] in ("queued", "started")]
    if not under_way:
        return seat
    # Messages run concurrently with the collective at the front.
    front = next((entry for entry in under_way if "sequence" in entry), under_way[0])
    return dataclasses.replace(
        seat, operation=str(front["operation"]), seconds=_since([front["issued_ns"]], answer)
    )


def _since(times_ns: Iterable[int | None], answer: _Json) -> float | None:
    """Return the seconds from the latest of some times to the answer."""
    passed = [time_ns for time_ns in times_ns if time_ns is not None]
    return (answer["steady_ns"] - max(passed)) / 1e9 if passed else None


def _members_of(seat: Seat, door: str, timeout_s: float) -> Iterator[_Member]:
    for _, answer in _answers(door, bytes.fromhex(seat.key), timeout_s):
        try:
            yield from [
                _Member(
                    f"rank {int(member['rank'])} of group {seat.group} (process"
                    f" {int(member['pid'])} on {member['host']})",
                    tuple(str(door) for door in member["doors"]),
                )
                for member in answer["members"]
            ]
        except _MALFORMED as error:
            raise _unreadable(door, error) from None

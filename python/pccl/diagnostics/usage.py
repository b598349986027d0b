# SPDX-License-Identifier: Apache-2.0
"""Counters that a process of a running job reports: of its cores, and of its rank in a group."""

from __future__ import annotations

import dataclasses
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CollectiveCounts",
    "CpuTimes",
    "Launches",
    "MessageTotals",
    "Messages",
    "Path",
    "Usage",
    "Wait",
    "cpu_times_of",
    "launches_of",
    "usage_of",
]

_Json: typing.TypeAlias = dict[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class CpuTimes:
    """Times of all threads of a process, in seconds; 0 where the kernel does not count them."""

    run_s: float  # on a core
    queued_s: float  # runnable, while other threads had the cores

    def __sub__(self, earlier: CpuTimes) -> CpuTimes:
        return CpuTimes(_rise(earlier.run_s, self.run_s), _rise(earlier.queued_s, self.queued_s))

    def __add__(self, later: CpuTimes) -> CpuTimes:
        return CpuTimes(self.run_s + later.run_s, self.queued_s + later.queued_s)


@dataclasses.dataclass(frozen=True)
class CollectiveCounts:
    """Collectives of a rank over one path."""

    calls: int = 0
    bytes: int = 0  # of the longer of the caller's two buffers
    seconds: float = 0.0
    predicted_s: float = 0.0  # by the cost model

    def __sub__(self, earlier: CollectiveCounts) -> CollectiveCounts:
        return CollectiveCounts(
            max(self.calls - earlier.calls, 0),
            max(self.bytes - earlier.bytes, 0),
            _rise(earlier.seconds, self.seconds),
            _rise(earlier.predicted_s, self.predicted_s),
        )

    def __add__(self, later: CollectiveCounts) -> CollectiveCounts:
        return CollectiveCounts(
            self.calls + later.calls,
            self.bytes + later.bytes,
            self.seconds + later.seconds,
            self.predicted_s + later.predicted_s,
        )


@dataclasses.dataclass(frozen=True)
class Wait:
    """Time in which nothing moved at a rank, because another rank had to act."""

    rank: int
    act: str  # "send", "receive" or "join"
    seconds: float


@dataclasses.dataclass(frozen=True)
class Path:
    """Network path of a rank to a peer, as the kernel's TCP counts it."""

    peer: int
    bytes: int = 0  # that the peer's host has acknowledged
    resent: int = 0  # bytes that were sent again
    round_trip_s: float = 0.0  # smoothed; 0: none was measured
    busy_s: float = 0.0  # time in which data was in flight or waited to be
    interface: str = ""  # of the rank's host; empty: unknown

    @property
    def key(self) -> tuple[int, str]:
        """The peer and the interface, which name the path among those of a rank."""
        return self.peer, self.interface

    def __sub__(self, earlier: Path) -> Path:
        return dataclasses.replace(
            self,
            bytes=max(self.bytes - earlier.bytes, 0),
            resent=max(self.resent - earlier.resent, 0),
            busy_s=_rise(earlier.busy_s, self.busy_s),
        )

    def __add__(self, later: Path) -> Path:
        known = [trip for trip in (self.round_trip_s, later.round_trip_s) if trip > 0]
        return dataclasses.replace(
            self,
            bytes=self.bytes + later.bytes,
            resent=self.resent + later.resent,
            round_trip_s=min(known, default=0.0),
            busy_s=self.busy_s + later.busy_s,
        )


@dataclasses.dataclass(frozen=True)
class MessageTotals:
    """Messages of a rank in one direction."""

    calls: int = 0
    bytes: int = 0

    def __sub__(self, earlier: MessageTotals) -> MessageTotals:
        return MessageTotals(max(self.calls - earlier.calls, 0), max(self.bytes - earlier.bytes, 0))

    def __add__(self, later: MessageTotals) -> MessageTotals:
        return MessageTotals(self.calls + later.calls, self.bytes + later.bytes)


@dataclasses.dataclass(frozen=True)
class Messages:
    """Messages of a rank in a group."""

    sent: MessageTotals = MessageTotals()
    received: MessageTotals = MessageTotals()
    seconds: float = 0.0  # with a message under way
    waits: tuple[Wait, ...] = ()  # while no collective ran, longest first

    @property
    def calls(self) -> int:
        """Number of messages."""
        return self.sent.calls + self.received.calls

    def __sub__(self, earlier: Messages) -> Messages:
        return Messages(
            self.sent - earlier.sent,
            self.received - earlier.received,
            _rise(earlier.seconds, self.seconds),
            _risen(earlier.waits, self.waits),
        )

    def __add__(self, later: Messages) -> Messages:
        return Messages(
            self.sent + later.sent,
            self.received + later.received,
            self.seconds + later.seconds,
            _summed(self.waits, later.waits),
        )


@dataclasses.dataclass(frozen=True)
class Launches:
    """Launches of a rank of a group on GPUs, since the group was made."""

    calls: int  # collectives
    bytes: int  # of the longer of each call's two buffers
    messages: int
    sent_bytes: int
    received_bytes: int
    captured: int  # into CUDA graphs, whose runs nobody counts
    launch_s: float  # time of the host in launches


@dataclasses.dataclass(frozen=True)
class Usage:
    """Counters of a rank in a group, since the group was made or over a time."""

    shm: CollectiveCounts
    links: CollectiveCounts
    between_s: float  # from the end of one collective to the next call
    waits: tuple[Wait, ...]  # longest first
    network: tuple[Path, ...] = ()  # by peer
    messages: Messages = Messages()

    @property
    def by_path(self) -> dict[str, CollectiveCounts]:
        """Counts by the name of the path."""
        return {"shm": self.shm, "links": self.links}

    @property
    def operations(self) -> int:
        """Number of collectives and messages."""
        return self.calls + self.messages.calls

    @property
    def calls(self) -> int:
        """Number of collectives."""
        return self.shm.calls + self.links.calls

    @property
    def within_s(self) -> float:
        """Time in collectives."""
        return self.shm.seconds + self.links.seconds

    @property
    def predicted_s(self) -> float:
        """Time that the cost model predicts for them."""
        return self.shm.predicted_s + self.links.predicted_s

    @property
    def waited_s(self) -> float:
        """Time in collectives in which nothing moved."""
        return sum(wait.seconds for wait in self.waits)

    @property
    def total_s(self) -> float:
        """Time in collectives and between them."""
        return self.within_s + self.between_s

    def waited_for(self, rank: int, act: str) -> float:
        """Return the seconds of waits for one action of one rank."""
        return sum(w.seconds for w in self.waits if (w.rank, w.act) == (rank, act))

    def with_shortest_of(self, others: Iterable[Usage | None]) -> Usage:
        """Return the same with the shortest round trip of each path that others have."""
        shortest: dict[tuple[int, str], float] = {}
        for usage in others:
            for path in usage.network if usage else ():
                known = shortest.setdefault(path.key, path.round_trip_s)
                shortest[path.key] = min(known, path.round_trip_s)
        network = (
            dataclasses.replace(path, round_trip_s=shortest.get(path.key, path.round_trip_s))
            for path in self.network
        )
        return dataclasses.replace(self, network=tuple(network))

    def __sub__(self, earlier: Usage) -> Usage:
        known = {path.key: path for path in earlier.network}
        return Usage(
            self.shm - earlier.shm,
            self.links - earlier.links,
            _rise(earlier.between_s, self.between_s),
            _risen(earlier.waits, self.waits),
            tuple(path - known.get(path.key, Path(path.peer)) for path in self.network),
            self.messages - earlier.messages,
        )

    def __add__(self, later: Usage) -> Usage:
        paths = {path.key: path for path in self.network}
        for path in later.network:
            paths[path.key] = paths[path.key] + path if path.key in paths else path
        return Usage(
            self.shm + later.shm,
            self.links + later.links,
            self.between_s + later.between_s,
            _summed(self.waits, later.waits),
            tuple(paths[key] for key in sorted(paths)),
            self.messages + later.messages,
        )


def _risen(earlier: tuple[Wait, ...], later: tuple[Wait, ...]) -> tuple[Wait, ...]:
    known = {(wait.rank, wait.act): wait.seconds for wait in earlier}
    risen = (
        dataclasses.replace(w, seconds=_rise(known.get((w.rank, w.act), 0.0), w.seconds))
        for w in later
    )
    return _longest_first(risen)


def _summed(some: tuple[Wait, ...], more: tuple[Wait, ...]) -> tuple[Wait, ...]:
    sums: dict[tuple[int, str], float] = {}
    for wait in (*some, *more):
        sums[wait.rank, wait.act] = sums.get((wait.rank, wait.act), 0.0) + wait.seconds
    return _longest_first(Wait(*key, seconds) for key, seconds in sums.items())


def _longest_first(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    return tuple(sorted(waits, key=lambda wait: (-wait.seconds, wait.rank, wait.act)))


def usage_of(report: _Json | None) -> Usage | None:
    """Parse the "usage" of a group; None where there is none.

    Raises
    ------
    KeyError, TypeError, ValueError
        It is malformed.
    """
    if report is None:
        return None
    return Usage(
        _counts_of(report.get("shm")),
        _counts_of(report.get("links")),
        _seconds(report["between_s"]),
        _waits_of(report["waits"]),
        tuple(sorted(map(_path_of, report["paths"]), key=lambda path: path.key)),
        _messages_of(report.get("messages")),
    )


def launches_of(report: _Json | None) -> Launches | None:
    """Parse the "launches" of a group on GPUs; None where there is none. Raises as ``usage_of``."""
    if report is None:
        return None
    numbers = {
        field.name: int(report[field.name])
        for field in dataclasses.fields(Launches)
        if field.name != "launch_s"
    }
    return Launches(**numbers, launch_s=_seconds(report["launch_s"]))


def _messages_of(report: _Json | None) -> Messages:
    if report is None:
        return Messages()
    return Messages(
        MessageTotals(int(report["sent"]["calls"]), int(report["sent"]["bytes"])),
        MessageTotals(int(report["received"]["calls"]), int(report["received"]["bytes"])),
        _seconds(report["seconds"]),
        _waits_of(report["waits"]),
    )


def _waits_of(reports: Iterable[_Json]) -> tuple[Wait, ...]:
    return tuple(
        Wait(int(wait["rank"]), str(wait["for"]), _seconds(wait["seconds"])) for wait in reports
    )


def _path_of(report: _Json) -> Path:
    return Path(
        int(report["peer"]),
        int(report["bytes"]),
        int(report["resent"]),
        _seconds(report["round_trip_s"]),
        _seconds(report["busy_s"]),
        str(report.get("interface", "")),
    )


def cpu_times_of(report: _Json | None) -> CpuTimes | None:
    """Parse the "cpu" of an answer; None where there is none. Raises as ``usage_of``."""
    if report is None:
        return None
    return CpuTimes(_seconds(report["run_s"]), _seconds(report["queued_s"]))


def _counts_of(report: _Json | None) -> CollectiveCounts:
    if report is None:
        return CollectiveCounts()
    return CollectiveCounts(
        int(report["calls"]),
        int(report["bytes"]),
        _seconds(report["seconds"]),
        _seconds(report["predicted_s"]),
    )


def _seconds(value: typing.Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{seconds} is no time")
    return seconds


def _rise(earlier: float, later: float) -> float:
    return max(later - earlier, 0.0)

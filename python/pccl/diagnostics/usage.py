# SPDX-License-Identifier: Apache-2.0
"""Counters that a process of a running job reports: of its cores, and of its rank in a group."""

from __future__ import annotations

import dataclasses
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CollectiveCounts", "CpuTimes", "Path", "Usage", "Wait", "cpu_times_of", "usage_of"]

_Json: typing.TypeAlias = dict[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class CpuTimes:
    """Times of all threads of a process, in seconds; 0 where the kernel does not count them."""

    run_s: float  # on a core
    queued_s: float  # runnable, while other threads had the cores

    def __sub__(self, earlier: CpuTimes) -> CpuTimes:
        return CpuTimes(_rise(earlier.run_s, self.run_s), _rise(earlier.queued_s, self.queued_s))


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

    def __sub__(self, earlier: Path) -> Path:
        return Path(
            self.peer,
            max(self.bytes - earlier.bytes, 0),
            max(self.resent - earlier.resent, 0),
            self.round_trip_s,
            _rise(earlier.busy_s, self.busy_s),
        )


@dataclasses.dataclass(frozen=True)
class Usage:
    """Counters of a rank in a group, since the group was made or over a time."""

    shm: CollectiveCounts
    links: CollectiveCounts
    between_s: float  # from the end of one collective to the next call
    waits: tuple[Wait, ...]  # longest first
    network: tuple[Path, ...] = ()  # by peer

    @property
    def by_path(self) -> dict[str, CollectiveCounts]:
        """Counts by the name of the path."""
        return {"shm": self.shm, "links": self.links}

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
        shortest: dict[int, float] = {}
        for usage in others:
            for path in usage.network if usage else ():
                known = shortest.setdefault(path.peer, path.round_trip_s)
                shortest[path.peer] = min(known, path.round_trip_s)
        network = (
            dataclasses.replace(path, round_trip_s=shortest.get(path.peer, path.round_trip_s))
            for path in self.network
        )
        return dataclasses.replace(self, network=tuple(network))

    def __sub__(self, earlier: Usage) -> Usage:
        known = {path.peer: path for path in earlier.network}
        waits = (
            dataclasses.replace(w, seconds=_rise(earlier.waited_for(w.rank, w.act), w.seconds))
            for w in self.waits
        )
        return Usage(
            self.shm - earlier.shm,
            self.links - earlier.links,
            _rise(earlier.between_s, self.between_s),
            tuple(sorted(waits, key=lambda wait: -wait.seconds)),
            tuple(path - known.get(path.peer, Path(path.peer)) for path in self.network),
        )


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
        _counts_of(report["shm"]),
        _counts_of(report["links"]),
        _seconds(report["between_s"]),
        tuple(
            Wait(int(wait["rank"]), str(wait["for"]), _seconds(wait["seconds"]))
            for wait in report["waits"]
        ),
        tuple(
            Path(
                int(path["peer"]),
                int(path["bytes"]),
                int(path["resent"]),
                _seconds(path["round_trip_s"]),
                _seconds(path["busy_s"]),
            )
            for path in sorted(report["paths"], key=lambda path: int(path["peer"]))
        ),
    )


def cpu_times_of(report: _Json | None) -> CpuTimes | None:
    """Parse the "cpu" of an answer; None where there is none. Raises as ``usage_of``."""
    if report is None:
        return None
    return CpuTimes(_seconds(report["run_s"]), _seconds(report["queued_s"]))


def _counts_of(report: _Json) -> CollectiveCounts:
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

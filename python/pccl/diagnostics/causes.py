# SPDX-License-Identifier: Apache-2.0
"""What a job's collectives cost over a time, and which rank, core or path they waited for.

A rank that comes late waits for nobody while the others wait for it. On a path that is too slow,
the receiver waits for data while the sender waits for space. Both follow from the counters of all
ranks (pccl.diagnostics.usage) over the same time. Paths that lose packets, or are longer than the
others, follow from the counters of the kernel's TCP.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pccl.diagnostics.job_status import Job, Process, Seat
    from pccl.diagnostics.usage import CpuTimes, Path, Usage

__all__ = [
    "Cause",
    "GroupTime",
    "RankTime",
    "causes_of",
    "group_times",
    "is_like",
    "lasting_causes",
    "looks",
]

LEAST_PART = 0.05  # of a group's time that a cause must cost
_CORE_PART = 0.3  # of an excess for which waits for a core are given as the reason
_LOOKS = 9
_STRIDES = (1, 2, 4)  # of looks between which parts of the time are
_LEAST_CALLS = 3  # of each rank in a part
# A cause lasts if more than these of the parts show it. Noise makes any rank the last one of a
# moment, and one of two ranks in half of them, but seldom at half of the cost. It seldom fills
# a path.
_LASTING_RANK = 0.8
_LASTING_RANK_OF_TWO = 0.9
_LASTING = 0.5
_GREAT_PART = 0.5  # of a group's time
_FEW_PARTS = 4
_LEAST_PART_OF_FEW = 0.25
# A path is lossy if TCP sends this part of its bytes again, and so many bytes. A busy host alone
# makes it resend a few.
_LOSSY_PART = 0.005
_LOSSY_BYTES = 16 << 10
_LEAST_BYTES = 16 << 10  # that a path must carry for its round trip to be of this time
# A round trip stands out from so many times the usual one, and so many seconds, on.
_FAR_TIMES = 3.0
_FAR_S = 200e-6
_LEAST_ROUNDS = 2  # of a collective, which a round trip makes longer


@dataclasses.dataclass(frozen=True)
class RankTime:
    """How a rank of a group spent the time between two queries."""

    rank: int
    host: str
    pid: int
    usage: Usage
    cpu: CpuTimes | None

    @property
    def own_s(self) -> float:
        """Time in collectives in which data of this rank moved."""
        return max(self.usage.within_s - self.usage.waited_s, 0.0)


# The sender, the receiver, and the counters of the sender.
_Ends: typing.TypeAlias = "tuple[RankTime, RankTime, Path]"


@dataclasses.dataclass(frozen=True)
class GroupTime:
    """The ranks of one group that answered both queries, by rank."""

    group: str
    size: int
    ranks: tuple[RankTime, ...]
    key: str = ""  # several groups may have the same name

    @property
    def seconds(self) -> float:
        """Time in collectives and between them: the median over ranks."""
        return statistics.median(rank.usage.total_s for rank in self.ranks)

    def part_of(self, seconds: float) -> float:
        """Return the part of the time; the waits of a call that has not ended count already."""
        return min(seconds / self.seconds, 1.0)

    @property
    def calls(self) -> int:
        """Collectives of the rank that made the most."""
        return max(rank.usage.calls for rank in self.ranks)


@dataclasses.dataclass(frozen=True)
class Cause:
    """One reason why a group's collectives take long."""

    group: str
    kind: str  # "late", "slow", "core" or "path"
    ranks: tuple[int, ...]  # the rank; for a path the sender and the receiver
    seconds: float  # that it cost each other rank in the median
    part: float  # of the group's time
    text: str


def looks(query: Callable[[], Job], seconds: float) -> list[Job]:
    """Query a job at the begin and the end of a time, and at even distances between."""
    found = [query()]
    begin = time.monotonic()
    for part in range(1, _LOOKS):
        time.sleep(max(begin + seconds * part / (_LOOKS - 1) - time.monotonic(), 0))
        found.append(query())
    return found


def group_times(looks: Sequence[Job]) -> list[GroupTime]:
    """Return the times of the groups whose ranks made operations between queries of a job.

    Counters are those of the first and the last query. A round trip is the shortest of all queries
    but the first: the time that a process needs to run adds to it.
    """
    seats = [
        {_identity(seat, process): (seat, process) for seat, process in _seats(job)}
        for job in looks
    ]
    groups: dict[tuple[str, str], list[tuple[Seat, RankTime]]] = {}
    for identity, (seat, process) in seats[-1].items():
        known = seats[0].get(identity)
        if known is None or seat.usage is None or known[0].usage is None:
            continue
        cpu = process.cpu - known[1].cpu if process.cpu and known[1].cpu else None
        between = [look[identity][0].usage for look in seats[1:] if identity in look]
        change = (seat.usage - known[0].usage).with_shortest_of(between)
        spent = RankTime(seat.rank, process.host, process.pid, change, cpu)
        groups.setdefault(seat.identity, []).append((seat, spent))
    return [
        GroupTime(members[0][0].group, members[0][0].size, tuple(ranks), members[0][0].key)
        for members in groups.values()
        if (ranks := _sorted(time for _, time in members if time.usage.operations))
    ]


def lasting_causes(looks: Sequence[Job]) -> list[tuple[GroupTime, list[Cause]]]:
    """Return the groups with the causes that lasted: most parts of the time show them, too.

    What else runs on a host disturbs ranks and paths for moments.
    """
    if not looks:
        return []
    times = {stride: _times_between(looks[::stride]) for stride in _STRIDES}
    found = []
    for group in group_times(looks):
        parts = _parts_of(group, times)
        in_parts = [causes_of(each, 1 / len(parts)) for each in parts]
        found.append((group, [c for c in causes_of(group) if _lasts(c, group, in_parts)]))
    return found


def _times_between(looks: Sequence[Job]) -> list[dict[str, GroupTime]]:
    """Return the times between each two looks, by the key of the group."""
    pairs = itertools.pairwise(looks)
    return [{group.key: group for group in group_times(both)} for both in pairs]


def _parts_of(group: GroupTime, times: dict[int, list[dict[str, GroupTime]]]) -> list[GroupTime]:
    """Return the shortest parts of the time in which each rank has ended calls; else the whole."""
    for parts in times.values():
        own = [part[group.key] for part in parts if group.key in part]
        if len(own) == len(parts) and all(_is_full(each, group) for each in own):
            return own
    return [group]


def is_like(a: Cause, b: Cause) -> bool:
    """Return whether causes may have one origin: a late rank may be short of a core."""
    return _origin_of(a) == _origin_of(b) and a.ranks == b.ranks


def _origin_of(cause: Cause) -> str:
    return "path" if cause.kind == "path" else "rank"


def _is_full(part: GroupTime, group: GroupTime) -> bool:
    calls = [rank.usage.calls for rank in part.ranks]
    return len(calls) == len(group.ranks) and min(calls) >= _LEAST_CALLS


def _lasts(cause: Cause, group: GroupTime, in_parts: Sequence[Sequence[Cause]]) -> bool:
    parts, shown = len(in_parts), _count_of(cause, in_parts)
    if _origin_of(cause) == "path" or cause.part >= _GREAT_PART:
        return shown > _LASTING * parts
    if parts <= _FEW_PARTS:
        return parts == shown == _FEW_PARTS and cause.part >= _LEAST_PART_OF_FEW
    return shown > (_LASTING_RANK if len(group.ranks) > 2 else _LASTING_RANK_OF_TWO) * parts


def _count_of(cause: Cause, parts: Iterable[Sequence[Cause]]) -> int:
    """Count the times with a like cause; any path of a host may be the worst one of its paths."""

    def shows(other: Cause) -> bool:
        is_near = _origin_of(cause) == "path" and not {*cause.ranks}.isdisjoint(other.ranks)
        return is_like(cause, other) or (is_near and _origin_of(other) == "path")

    return sum(any(map(shows, part)) for part in parts)


def causes_of(group: GroupTime, part: float = 1.0) -> list[Cause]:
    """Return the causes that cost a group at least LEAST_PART of its time, costliest first.

    Parameters
    ----------
    group
        The group over some time.
    part
        Part of a longer time in which so many bytes as usual are needed for a cause.
    """
    group = dataclasses.replace(group, ranks=tuple(r for r in group.ranks if r.usage.calls))
    if len(group.ranks) < 2 or group.seconds <= 0:
        return []
    late = _late_rank(group)
    causes = [cause for cause in (late, _bad_path(group, late, part)) if cause is not None]
    return sorted(causes, key=lambda cause: -cause.seconds)


def _seats(job: Job) -> Iterator[tuple[Seat, Process]]:
    for process in job.processes:
        for seat in process.seats:
            yield seat, process


def _identity(seat: Seat, process: Process) -> tuple[object, ...]:
    return (*seat.identity, seat.rank, process.host, process.pid)


def _sorted(times: Iterable[RankTime]) -> list[RankTime]:
    return sorted(times, key=lambda time: time.rank)


def _late_rank(group: GroupTime) -> Cause | None:
    """Return the rank that waits least, if the others wait for it."""
    last = min(group.ranks, key=lambda rank: rank.usage.waited_s)
    others = [rank for rank in group.ranks if rank is not last]
    lost = statistics.median(rank.usage.waited_s for rank in others) - last.usage.waited_s
    part = group.part_of(lost)
    if part < LEAST_PART:
        return None
    later = last.usage.between_s - statistics.median(rank.usage.between_s for rank in others)
    slower = last.own_s - statistics.median(rank.own_s for rank in others)
    is_late = later >= slower
    excess = max(later, slower)
    if excess < lost / 2:  # the waits have another origin
        return None
    mine = (last.usage.between_s if is_late else last.own_s) / last.usage.total_s
    usual = statistics.median(
        (rank.usage.between_s if is_late else rank.own_s) / rank.usage.total_s for rank in others
    )
    where = "between collectives" if is_late else "at its own work within collectives"
    text = (
        f"rank {last.rank} (process {last.pid} on {last.host}) spends {mine:.0%} of its time"
        f" {where}, the others {usual:.0%}: they wait for it"
    )
    queued = _queued_s(last)
    more_queued = queued - statistics.median(map(_queued_s, others))
    waits_for_core = more_queued >= _CORE_PART * excess
    if waits_for_core:
        text += (
            f"; its threads waited {queued:.1f} s for a core that other threads had (affinity,"
            " other processes, quota)"
        )
    kind = "core" if waits_for_core else "late" if is_late else "slow"
    return Cause(group.group, kind, (last.rank,), lost, part, text)


def _queued_s(rank: RankTime) -> float:
    return rank.cpu.queued_s if rank.cpu else 0.0


def _bad_path(group: GroupTime, late: Cause | None, part: float) -> Cause | None:
    """Return the path that is full, or else loses bytes, or is long.

    TCP sends a few bytes again on a long path, and to a rank that waits for a core.
    """
    return (
        _full_path(group)
        or _lossy_path(group, part, 4 * _LOSSY_PART)
        or _unless_late(late, _lossy_path(group, part, 2 * _LOSSY_PART))
        or _unless_late(late, _distant_path(group, part))
        or _unless_late(late, _lossy_path(group, part, _LOSSY_PART))
    )


def _unless_late(late: Cause | None, path: Cause | None) -> Cause | None:
    """Return the path, unless a rank explains half of the waits."""
    return None if late and path and late.seconds >= path.seconds / 2 else path


def _lossy_path(group: GroupTime, part: float, lossy_part: float) -> Cause | None:
    """Return the path that loses most, if TCP sends so much of its bytes again."""
    worst = max(_paths(group, part), key=lambda path: _resent_part(path[2]), default=None)
    if worst is None or _resent_part(worst[2]) < lossy_part:
        return None
    if worst[2].resent < _LOSSY_BYTES * part:
        return None
    text = f"loses packets: TCP has sent {_resent_part(worst[2]):.1%} of its bytes again"
    return _cause_of_waits(group, worst, text)


def _cause_of_waits(group: GroupTime, ends: _Ends, text: str) -> Cause | None:
    """Return the cause of all waits of the group, if they are long."""
    waited = statistics.median(rank.usage.waited_s for rank in group.ranks)
    part = group.part_of(waited)
    if part < LEAST_PART:
        return None
    sender, receiver, path = ends
    ranks = (sender.rank, receiver.rank)
    named = _path(sender, receiver, path.interface)
    return Cause(group.group, "path", ranks, waited, part, f"{named} {text}")


def _full_path(group: GroupTime) -> Cause | None:
    """Return the pair of ranks whose receiver waits for data while its sender waits for space."""
    by_rank = {rank.rank: rank for rank in group.ranks}
    worst: tuple[float, RankTime, RankTime] | None = None
    for receiver in group.ranks:
        for wait in receiver.usage.waits:
            sender = by_rank.get(wait.rank)
            if wait.act != "send" or sender is None:
                continue
            lost = min(wait.seconds, sender.usage.waited_for(receiver.rank, "receive"))
            if worst is None or lost > worst[0]:
                worst = (lost, sender, receiver)
    if worst is None or group.part_of(worst[0]) < LEAST_PART:
        return None
    lost, sender, receiver = worst
    own = (path for path in sender.usage.network if path.peer == receiver.rank)
    busiest = max(own, key=lambda path: path.busy_s, default=None)
    named = _path(sender, receiver, busiest.interface if busiest else "")
    text = (
        f"{named} is full: the sender waited {lost:.1f} s for space while the"
        " receiver waited for data"
    )
    ranks = (sender.rank, receiver.rank)
    return Cause(group.group, "path", ranks, lost, group.part_of(lost), text)


def _distant_path(group: GroupTime, part: float) -> Cause | None:
    """Return the path whose round trip stands out.

    A receiver that is late, or waits for a core, delays its acknowledgements: both directions of a
    pair count, if both carry data.
    """
    round_trips: dict[tuple[int, int], float] = {}
    ends: dict[tuple[int, int], _Ends] = {}
    for sender, receiver, path in _paths(group, part):
        pair = (min(sender.rank, receiver.rank), max(sender.rank, receiver.rank))
        ends[pair] = (sender, receiver, path)
        round_trips[pair] = min(round_trips.get(pair, path.round_trip_s), path.round_trip_s)
    if len(round_trips) < 2:
        return None
    pair = max(round_trips, key=round_trips.__getitem__)
    longest = round_trips.pop(pair)
    usual = statistics.median(round_trips.values())
    if longest < _FAR_TIMES * usual + _FAR_S:
        return None
    if _LEAST_ROUNDS * group.calls * (longest - usual) < LEAST_PART * group.seconds:
        return None
    text = f"has a round trip of {longest * 1e3:.2f} ms, the others {usual * 1e3:.2f} ms"
    return _cause_of_waits(group, ends[pair], text)


def _paths(group: GroupTime, part: float) -> Iterator[_Ends]:
    by_rank = {rank.rank: rank for rank in group.ranks}
    for sender in group.ranks:
        for path in sender.usage.network:
            receiver = by_rank.get(path.peer)
            if receiver is not None and path.bytes >= _LEAST_BYTES * part:
                yield sender, receiver, path


def _resent_part(path: Path) -> float:
    return path.resent / (path.bytes + path.resent)


def _path(sender: RankTime, receiver: RankTime, interface: str) -> str:
    by = f" by {interface}" if interface else ""
    return (
        f"the path from rank {sender.rank} ({sender.host}) to rank {receiver.rank}"
        f" ({receiver.host}){by}"
    )

# SPDX-License-Identifier: Apache-2.0
"""Since when a group's collectives have taken long, and why: causes over the windows of a ledger.

The causes of each window (pccl.diagnostics.causes) are those of its time. Windows in a row with one
cause are an episode. A path that has become slower than it was is found by its own earlier windows.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import typing

from pccl.diagnostics import causes
from pccl.diagnostics.causes import Cause, GroupTime, RankTime
from pccl.diagnostics.usage import CpuTimes, Usage

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pccl.diagnostics.ledger import Ledger, Record, Window
    from pccl.diagnostics.usage import Path

__all__ = ["Episode", "Step", "episodes_of", "slowed_paths", "steps_of"]

_MOST_MISSING = 1  # windows without the cause within an episode
_LEAST_PART = causes.LEAST_PART
_LEAST_S = 6  # of an episode: noise lasts for moments
# A path has become slower if it carries at most this part of what it did, by itself and beside what
# the other paths of the group carry of what they did.
_SLOWER = 0.7
_LEAST_WINDOWS = 2  # before and after a change
_LEAST_BYTES = 64 << 10  # of a window that counts for the rate of a path
_LEAST_BUSY_S = 5e-3

_Load: typing.TypeAlias = tuple[float, float] | None  # bytes, and the seconds for them
_PathKey: typing.TypeAlias = tuple[int, int, str]  # sender, receiver, interface of the sender


@dataclasses.dataclass(frozen=True)
class Step:
    """A group in one window of time."""

    begin_s: int  # since 1970
    end_s: int
    group: GroupTime


@dataclasses.dataclass(frozen=True)
class Episode:
    """A time in which one cause made a group's collectives take long."""

    cause: Cause  # that of the whole time
    begin_s: int | None  # since 1970; None: it is as old as the ledger
    end_s: int | None  # None: it is not over
    rate: float | None = None  # of a path: the part that it carries of what it did before
    is_seen: bool = False  # by looks at the running job, too


def steps_of(ledger: Ledger) -> dict[str, list[Step]]:
    """Return the steps of each group, oldest first, by the key of the group.

    Groups of the same name and size on the same hosts that follow each other are runs of one job:
    their steps have the key of the last one.
    """
    groups: dict[str, list[Record]] = {}
    for record in ledger.records:
        groups.setdefault(record.key, []).append(record)
    runs = {key: list(_steps_of_group(records)) for key, records in groups.items()}
    chains: dict[tuple[object, ...], tuple[str, list[Step]]] = {}
    found: dict[str, list[Step]] = {}
    for key in sorted((k for k in runs if runs[k]), key=lambda k: (runs[k][0].begin_s, k)):
        place = _place_of(groups[key])
        last, steps = chains.get(place, ("", []))
        if steps and steps[-1].end_s <= runs[key][0].begin_s:
            del found[last]
        else:
            steps = []
        found[key] = [*steps, *runs[key]]
        chains[place] = (key, found[key])
    return found


def episodes_of(steps: Sequence[Step]) -> list[Episode]:
    """Return the episodes of a group, the one that cost most first."""
    found: list[Episode | None] = []
    open_since: dict[tuple[object, ...], list[int]] = {}  # indexes of the steps with a cause
    for index, step in enumerate(steps):
        for name in {_name_of(cause) for cause in causes.causes_of(step.group)}:
            open_since.setdefault(name, []).append(index)
        over = [n for n, at in open_since.items() if index - at[-1] > _MOST_MISSING]
        found += [_episode(steps, name, open_since.pop(name)) for name in over]
    found += [_episode(steps, name, at) for name, at in open_since.items()]
    known = [each for each in found if each is not None]
    return sorted([*known, *slowed_paths(steps)], key=lambda episode: -episode.cause.seconds)


def slowed_paths(steps: Sequence[Step]) -> list[Episode]:
    """Return the paths that carry less than they did, and since when, the slowest first."""
    rates = [_rates_of(step) for step in steps]
    keys = sorted({key for each in rates for key in each})
    splits: dict[int, dict[_PathKey, float]] = {}
    for key in keys:
        split = _change_of([each.get(key) for each in rates])
        ratio = None if split is None else _ratio(rates, key, split)
        if split is not None and ratio is not None and ratio <= _SLOWER:
            splits.setdefault(split, {})[key] = ratio
    found = []
    for split, slower in splits.items():
        lost = _lost(steps, split)
        if lost[1] < _LEAST_PART:
            continue
        ratios = {key: r for key in keys if (r := _ratio(rates, key, split)) is not None}
        for key, ratio in slower.items():
            others = [other for each, other in ratios.items() if each != key]
            if not others or ratio <= _SLOWER * statistics.median(others):
                found.append(_slowed(steps[split:], key, ratio, lost))
    return sorted(found, key=lambda episode: episode.rate or 0.0)


def _slowed(
    since: Sequence[Step], key: _PathKey, ratio: float, lost: tuple[float, float]
) -> Episode:
    """Return the episode of a path, by the steps since its change; it cost seconds, and a part."""
    sender, receiver, interface = key
    hosts = {rank.rank: rank.host for step in since for rank in step.group.ranks}
    by = f" by {interface}" if interface else ""
    text = (
        f"the path from rank {sender} ({hosts[sender]}) to rank {receiver}"
        f" ({hosts.get(receiver, '?')}){by} carries {ratio:.2f} of what it did"
    )
    cause = Cause(since[-1].group.group, "path", (sender, receiver), *lost, text)
    return Episode(cause, since[0].begin_s, None, ratio)


def _place_of(records: Sequence[Record]) -> tuple[object, ...]:
    ranks = sorted((record.rank, record.host) for record in records)
    return records[0].group, records[0].size, tuple(ranks)


def _steps_of_group(records: Sequence[Record]) -> Iterator[Step]:
    for begin, end in _common_spans(records):
        ranks = []
        for record in records:
            parts = [w for w in record.windows if begin <= w.begin_s and w.end_s <= end]
            if parts:
                ranks.append(_rank_time(record, parts))
        ranks = [rank for rank in ranks if rank.usage.calls]
        if ranks:
            ranks.sort(key=lambda rank: rank.rank)
            group = GroupTime(records[0].group, records[0].size, tuple(ranks), records[0].key)
            yield Step(begin, end, group)


def _common_spans(records: Iterable[Record]) -> Iterator[tuple[int, int]]:
    """Yield the longest windows of any rank: each window of another rank is a part of one."""
    spans = {(w.begin_s, w.end_s) for record in records for w in record.windows}
    end = 0
    for span in sorted(spans, key=lambda each: (each[0], -each[1])):
        if span[1] > end:
            end = span[1]
            yield span


def _rank_time(record: Record, windows: Iterable[Window]) -> RankTime:
    usage, cpu = None, CpuTimes(0.0, 0.0)
    for window in windows:
        usage = window.usage if usage is None else usage + window.usage
        cpu += window.cpu
    assert usage is not None
    return RankTime(record.rank, record.host, record.pid, usage, cpu)


def _name_of(cause: Cause) -> tuple[object, ...]:
    """Return what causes of one origin have in common: a late rank may be short of a core."""
    return "path" if cause.kind == "path" else "rank", cause.ranks


def _episode(steps: Sequence[Step], name: tuple[object, ...], at: Sequence[int]) -> Episode | None:
    """Return the episode of the steps with a cause; None if it is brief, or if they have no sum."""
    if sum(steps[index].end_s - steps[index].begin_s for index in at) < _LEAST_S:
        return None
    whole = _sum_of([step.group for step in steps[at[0] : at[-1] + 1]])
    cause = next((c for c in causes.causes_of(whole) if _name_of(c) == name), None)
    if cause is None:
        return None
    is_over = len(steps) - 1 - at[-1] > _MOST_MISSING
    begin = steps[at[0]].begin_s if at[0] else None
    return Episode(cause, begin, steps[at[-1]].end_s if is_over else None)


def _sum_of(groups: Sequence[GroupTime]) -> GroupTime:
    sums: dict[tuple[int, str, int], tuple[Usage, CpuTimes]] = {}
    for group in groups:
        for rank in group.ranks:
            key, cpu = (rank.rank, rank.host, rank.pid), rank.cpu or CpuTimes(0.0, 0.0)
            known = sums.get(key)
            sums[key] = (known[0] + rank.usage, known[1] + cpu) if known else (rank.usage, cpu)
    ranks = tuple(RankTime(*key, *value) for key, value in sorted(sums.items()))
    return GroupTime(groups[-1].group, groups[-1].size, ranks, groups[-1].key)


def _rates_of(step: Step) -> dict[_PathKey, tuple[float, float]]:
    """Return the bytes, and the seconds in which a path was busy, of each path that counts."""
    return {
        (rank.rank, path.peer, path.interface): (float(path.bytes), path.busy_s)
        for rank in step.group.ranks
        for path in rank.usage.network
        if _counts(path)
    }


def _counts(path: Path) -> bool:
    return path.bytes >= _LEAST_BYTES and path.busy_s >= _LEAST_BUSY_S


def _rate(loads: Iterable[_Load]) -> float | None:
    known = [load for load in loads if load is not None]
    if len(known) < _LEAST_WINDOWS:
        return None
    return statistics.median(size / busy for size, busy in known)


def _change_of(loads: Sequence[_Load]) -> int | None:
    """Return the index from which on a path is slower: where two rates fit all windows best.

    The fit is by least squares of the logarithms.
    """
    logs = [(at, math.log(load[0] / load[1])) for at, load in enumerate(loads) if load is not None]
    total, before = sum(value for _, value in logs), 0.0
    best, split = 0.0, None
    for count in range(1, len(logs)):
        before += logs[count - 1][1]
        rest = len(logs) - count
        fall = before / count - (total - before) / rest
        gain = fall * fall * count * rest
        if fall > 0 and min(count, rest) >= _LEAST_WINDOWS and gain > best:
            best, split = gain, logs[count][0]
    return split


def _ratio(
    rates: Sequence[dict[_PathKey, tuple[float, float]]], key: _PathKey, split: int
) -> float | None:
    before = _rate(each.get(key) for each in rates[:split])
    after = _rate(each.get(key) for each in rates[split:])
    return after / before if before and after else None


def _lost(steps: Sequence[Step], split: int) -> tuple[float, float]:
    """Return how long collectives take since a change, beyond before it: seconds, and their part.

    They are compared by the ratio of measured to predicted time, as their lengths may differ.
    """
    before, after = _measured_by_rank(steps[:split]), _measured_by_rank(steps[split:])
    lost = [
        within - predicted * (before[rank][0] / before[rank][1])
        for rank, (within, predicted) in after.items()
        if rank in before and before[rank][1] > 0
    ]
    seconds = sum(step.group.seconds for step in steps[split:])
    if not lost or seconds <= 0:
        return 0.0, 0.0
    return statistics.median(lost), min(statistics.median(lost) / seconds, 1.0)


def _measured_by_rank(steps: Iterable[Step]) -> dict[int, tuple[float, float]]:
    """Return the measured and the predicted seconds in collectives of each rank."""
    sums: dict[int, tuple[float, float]] = {}
    for step in steps:
        for rank in step.group.ranks:
            within, predicted = sums.get(rank.rank, (0.0, 0.0))
            usage = rank.usage
            sums[rank.rank] = (within + usage.within_s, predicted + usage.predicted_s)
    return sums

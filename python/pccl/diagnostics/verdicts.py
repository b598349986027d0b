# SPDX-License-Identifier: Apache-2.0
"""What a job's collectives cost and why, with the time since when, as text, JSON and metrics."""

from __future__ import annotations

import dataclasses
import time
import typing

from pccl.diagnostics import causes, episodes
from pccl.diagnostics.episodes import Episode
from pccl.diagnostics.exposition import Metric, text_of

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pccl.diagnostics.causes import Cause, GroupTime
    from pccl.diagnostics.exposition import Sample
    from pccl.diagnostics.job_status import Job
    from pccl.diagnostics.ledger import Ledger

__all__ = ["Verdict", "exposition", "since_text", "verdicts_of"]

_PART = Metric("pccl_cause_ratio", "gauge", "Part of a group's time that a cause costs.")
_SINCE = Metric(
    "pccl_cause_since_timestamp_seconds", "gauge", "Begin of a cause, in seconds since 1970."
)
_RATE = Metric(
    "pccl_path_rate_ratio", "gauge", "Part that a slower path carries of what it did before."
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A group, how it spent the time that was looked at, and the episodes of its history."""

    group: str
    size: int
    now: GroupTime | None  # None: no collective ended while it was looked at
    episodes: tuple[Episode, ...]


def verdicts_of(looks: Sequence[Job], ledger: Ledger) -> list[Verdict]:
    """Combine what was looked at, maybe nothing, with the history of the same groups.

    A cause that is seen now is dated by the last episode of its kind and ranks.
    """
    steps = episodes.steps_of(ledger)
    looked_at = {group.key: (group, found) for group, found in causes.lasting_causes(looks)}
    verdicts = []
    for key in dict.fromkeys([*looked_at, *steps]):
        found = episodes.episodes_of(steps.get(key, []))
        now, seen = looked_at.get(key, (None, []))
        group = now or steps[key][-1].group
        dated = _dated(seen, found)
        verdicts.append(Verdict(group.group, group.size, now, tuple(dated)))
    return verdicts


def since_text(episode: Episode, today_s: float | None = None) -> str:
    """Return "since 12:03:10", or "12:03:10 to 12:05:00", in local time."""
    today = time.localtime(today_s)
    begin = "the first window" if episode.begin_s is None else _clock(episode.begin_s, today)
    if episode.end_s is None:
        return "" if episode.begin_s is None else f"since {begin}"
    return f"{begin} to {_clock(episode.end_s, today)}"


def exposition(verdicts: Iterable[Verdict]) -> str:
    """Return the causes that are not over in Prometheus' text format."""
    samples = [sample for verdict in verdicts for sample in _samples_of(verdict)]
    return text_of((_PART, _SINCE, _RATE), samples)


def _samples_of(verdict: Verdict) -> Iterator[Sample]:
    for episode in verdict.episodes:
        if episode.end_s is not None:
            continue
        cause = episode.cause
        labels = {
            "group": verdict.group,
            "kind": cause.kind,
            "ranks": ",".join(map(str, cause.ranks)),
        }
        yield _PART, labels, cause.part
        if episode.begin_s is not None:
            yield _SINCE, labels, episode.begin_s
        if episode.rate is not None:
            yield _RATE, labels, episode.rate


def _clock(moment_s: int, today: time.struct_time) -> str:
    moment = time.localtime(moment_s)
    is_today = moment[:3] == today[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", moment)


def _dated(now: Sequence[Cause], history: Sequence[Episode]) -> list[Episode]:
    """Return the causes that are seen now, each with its begin, and then the other episodes."""
    left = list(history)
    dated = []
    for cause in now:
        own = [e for e in left if e.end_s is None and causes.is_like(e.cause, cause)]
        slowed = [e for e in own if e.rate is not None]
        for episode in own:
            left.remove(episode)
        begins = [e.begin_s for e in slowed or own]
        begin = max((b for b in begins if b is not None), default=None)
        rate = slowed[0].rate if slowed else None
        text = f"{cause.text}; it carries {rate:.2f} of what it did" if rate else cause.text
        dated.append(
            Episode(dataclasses.replace(cause, text=text), begin, None, rate, is_seen=True)
        )
    return [*dated, *left]

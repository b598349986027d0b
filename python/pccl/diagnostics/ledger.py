# SPDX-License-Identifier: Apache-2.0
"""Ledger of a job: the counters of its ranks in windows of time, from processes and from files.

Ledgers merge by one rule. A record is named by its group's key, its rank, its host and its process;
a record that both ledgers have gets the windows of both. A window within a longer one is dropped,
as the longer one contains what it counts. Two windows of the same time are readings of one:
that with the greater counts is kept. So the order in which ledgers are merged does not matter, and
merging a ledger twice changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
import typing

from pccl.diagnostics.usage import CpuTimes, Usage, cpu_times_of, usage_of

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Ledger", "Record", "Window", "merged", "windows_of"]

VERSION = 1
_MALFORMED = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)

_NO_TIMES = CpuTimes(0.0, 0.0)

_Json: typing.TypeAlias = dict[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class Window:
    """What a rank has counted in a time; its length is a power of two times the shortest."""

    begin_s: int  # since 1970, a multiple of the length
    length_s: int
    usage: Usage
    cpu: CpuTimes = _NO_TIMES  # of the process

    @property
    def end_s(self) -> int:
        """Its end, in seconds since 1970."""
        return self.begin_s + self.length_s

    @property
    def span(self) -> tuple[int, int]:
        """Its begin and its length."""
        return self.begin_s, self.length_s

    def has(self, other: Window) -> bool:
        """Return whether the other window is a part of this longer one."""
        is_longer = self.length_s > other.length_s
        return is_longer and self.begin_s <= other.begin_s and other.end_s <= self.end_s


@dataclasses.dataclass(frozen=True)
class Record:
    """Windows of a rank in one group, oldest first."""

    group: str
    key: str
    size: int
    rank: int
    host: str
    pid: int
    windows: tuple[Window, ...]

    @property
    def identity(self) -> tuple[typing.Any, ...]:
        """All but the windows."""
        return self.key, self.rank, self.host, self.pid, self.group, self.size


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Records of some ranks, in the order of their identities."""

    records: tuple[Record, ...]

    def text(self) -> str:
        """Return the ledger as the text of a file."""
        records = [
            {**_head(record), "windows": [_as_json(window) for window in record.windows]}
            for record in self.records
        ]
        return json.dumps({"pccl_ledger": VERSION, "records": records}) + "\n"

    @staticmethod
    def of_text(text: str, name: str) -> Ledger:
        """Parse the text of a file.

        Raises
        ------
        ValueError
            It is no ledger; the message contains ``name``.
        """
        try:
            content = json.loads(text)
            version = content["pccl_ledger"]
            if version != VERSION:
                raise ValueError(f"version {version!r} is not {VERSION}")
            return merged([Ledger(tuple(map(_record_of, content["records"])))])
        except _MALFORMED as error:
            raise ValueError(
                f"{name} is no ledger of `pccl why --save` ({type(error).__name__}: {error})"
            ) from None


def merged(ledgers: Iterable[Ledger]) -> Ledger:
    """Return the ledger of all records."""
    windows: dict[tuple[typing.Any, ...], list[Window]] = {}
    records: dict[tuple[typing.Any, ...], Record] = {}
    for ledger in ledgers:
        for record in ledger.records:
            records[record.identity] = record
            windows.setdefault(record.identity, []).extend(record.windows)
    return Ledger(
        tuple(
            dataclasses.replace(records[identity], windows=tuple(_joined(windows[identity])))
            for identity in sorted(records)
        )
    )


def windows_of(reports: Iterable[_Json]) -> tuple[Window, ...]:
    """Parse the "windows" of an answer or a file.

    Raises
    ------
    KeyError, TypeError, ValueError
        They are malformed.
    """
    return tuple(map(_window_of, reports))


def _joined(windows: Iterable[Window]) -> Iterator[Window]:
    """Yield the windows that no longer one contains, in the order of time."""
    kept: dict[tuple[int, int], Window] = {}
    for window in windows:
        known = kept.get(window.span)
        if known is None or _rank_of(window) > _rank_of(known):
            kept[window.span] = window
    outer: Window | None = None
    for window in sorted(kept.values(), key=lambda each: (each.begin_s, -each.length_s)):
        if outer is None or not outer.has(window):
            outer = window
            yield window


def _rank_of(window: Window) -> tuple[int, str]:
    """Return what orders windows of the same time: their text decides between equal counts."""
    return window.usage.operations, json.dumps(_as_json(window), sort_keys=True)


def _window_of(report: _Json) -> Window:
    usage, cpu = usage_of(report["usage"]), cpu_times_of(report["cpu"])
    begin, length = int(report["begin_s"]), int(report["length_s"])
    is_aligned = begin >= 0 and length > 0 and length & (length - 1) == 0 and begin % length == 0
    if usage is None or cpu is None or not is_aligned:
        raise ValueError(f"no window of {length} s begins at {begin} s")
    return Window(begin, length, usage, cpu)


def _record_of(report: _Json) -> Record:
    return Record(
        group=str(report["group"]),
        key=str(report["key"]),
        size=int(report["size"]),
        rank=int(report["rank"]),
        host=str(report["host"]),
        pid=int(report["pid"]),
        windows=windows_of(report["windows"]),
    )


def _head(record: Record) -> _Json:
    return {
        field.name: getattr(record, field.name)
        for field in dataclasses.fields(Record)
        if field.name != "windows"
    }


def _as_json(window: Window) -> _Json:
    """Return a window as processes report it."""
    usage = window.usage
    return {
        "begin_s": window.begin_s,
        "length_s": window.length_s,
        "cpu": dataclasses.asdict(window.cpu),
        "usage": {
            "shm": dataclasses.asdict(usage.shm),
            "links": dataclasses.asdict(usage.links),
            "between_s": usage.between_s,
            "waits": _waits(usage.waits),
            "paths": [dataclasses.asdict(path) for path in usage.network],
            "messages": {
                "sent": dataclasses.asdict(usage.messages.sent),
                "received": dataclasses.asdict(usage.messages.received),
                "seconds": usage.messages.seconds,
                "waits": _waits(usage.messages.waits),
            },
        },
    }


def _waits(waits: Iterable[typing.Any]) -> list[_Json]:
    return [{"rank": wait.rank, "for": wait.act, "seconds": wait.seconds} for wait in waits]

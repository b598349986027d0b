# SPDX-License-Identifier: Apache-2.0
"""Files of flight records: search, parsing, and one-line errors."""

from __future__ import annotations

import contextlib
import json
import typing

from pccl._internal import given_file
from pccl.diagnostics.flight import (
    Operation,
    Record,
    SessionEvent,
    SessionRecord,
    SessionTransfer,
    Wait,
)

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["MOST_RANKS", "Records", "errors_of_fields", "find", "load", "load_raw", "parse"]

_VERSION = 1
_LONGEST_FILE = 64 << 20
MOST_RANKS = 1 << 24  # of a group, as the rendezvous has it
_MOST_OPERATIONS = 1 << 63
_MOST_BYTES = 1 << 64
_NAMES = "flight-*.json"  # names of the library's files in PCCL_FLIGHT_DIR

_Json: typing.TypeAlias = dict[str, typing.Any]


class Records(typing.NamedTuple):
    """Records of one file, of groups and of sessions."""

    groups: list[Record]
    sessions: list[SessionRecord]


def find(path: Path) -> list[Path]:
    """Return the records in the folder ``path``; if it is not a folder, ``path`` itself.

    Raises
    ------
    ValueError
        The folder contains no flight records.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(_NAMES))
    if not found:
        raise ValueError(f"{path} has no flight records ({_NAMES})")
    return found


def load(path: Path) -> Records:
    """Read a flight record's file; returns one record for each group and session.

    Raises
    ------
    ValueError
        The file is not a flight record; the message contains the reason.
    OSError
        The file cannot be read.
    pccl.UnavailableError
        The path is not a regular file.
    """
    return _read(path, lambda text: parse(path.name, text))


def load_raw(path: Path) -> _Json:
    """Read a flight record's file as the dictionary of ``pccl.diagnostics.flight_record()``.

    Raises
    ------
    ValueError, OSError
        As for ``load``.
    """

    def checked(text: bytes) -> _Json:
        parse(path.name, text)
        return _parsed(text)

    return _read(path, checked)


_Read = typing.TypeVar("_Read")


def _read(path: Path, of: Callable[[bytes], _Read]) -> _Read:
    try:
        return of(given_file.bytes_of(path, _LONGEST_FILE))
    except ValueError as error:
        raise ValueError(f"{path} is no flight record: {error}") from None


def parse(source: str, text: bytes) -> Records:
    """Parse the text of a flight record, which may be untrusted; ``source`` is its name.

    Raises
    ------
    ValueError
        The text is not a flight record; the message contains the reason.
    """
    with errors_of_fields():
        raw = _parsed(text)
        return Records(_records(source, raw), _session_records(source, raw))


@contextlib.contextmanager
def errors_of_fields() -> Iterator[None]:
    """Turn the exceptions that fields of other types and values cause into a ValueError."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"it has no {error}") from None
    except IndexError:
        raise ValueError("it has a rank that its group does not have") from None
    except (AttributeError, OverflowError, TypeError) as error:
        raise ValueError(
            f"a field has another type than in docs/reference/failure.md ({error})"
        ) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _parsed(text: bytes) -> _Json:
    try:
        raw = json.loads(text)
    except ValueError as error:  # an error of the JSON or of its encoding
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(raw, dict):
        raise ValueError(f"it holds a {type(raw).__name__}, not an object")  # noqa: TRY004
    if raw["version"] != _VERSION:
        raise ValueError(f"its version is {raw['version']!r}, and {_VERSION} is what this reads")
    return raw


def _whole(raw: _Json, key: str, least: int, most: int) -> int:
    """Return a field that is a whole number in its range; large ones would cost time and memory."""
    value = int(raw[key])
    if least <= value <= most:
        return value
    raise ValueError(f"its {key} is {value}, not from {least} to {most}")


def _records(source: str, raw: _Json) -> list[Record]:
    to_wall_s = raw["wall_ms"] / 1e3 - raw["steady_ns"] / 1e9
    sequences = {entry["ticket"]: entry.get("sequence") for entry in raw["entries"]}
    return [
        Record(
            source=source,
            group=str(group["name"]),
            rank=_whole(group, "rank", 0, MOST_RANKS - 1),
            size=_whole(group, "size", 1, MOST_RANKS),
            written_s=raw["wall_ms"] / 1e3,
            operations=tuple(
                _operation(entry, to_wall_s)
                for entry in raw["entries"]
                if entry["group"] == group["id"] and "sequence" in entry
            ),
            device=str(group.get("device", "cpu")),
            waits=tuple(_wait(wait, sequences) for wait in group.get("waits", ())),
        )
        for group in raw["groups"]
    ]


def _session_records(source: str, raw: _Json) -> list[SessionRecord]:
    sessions = raw.get("sessions", {"events": [], "transfers": []})
    now = raw["steady_ns"]
    events: dict[str, list[SessionEvent]] = {}
    under_way: dict[str, list[SessionTransfer]] = {}
    for event in sessions["events"]:
        if event["event"] != "connected":
            events.setdefault(str(event["session"]), []).append(_session_event(event, now))
    for transfer in sessions["transfers"]:
        if transfer["state"] == "posted" and "session" in transfer:
            nbytes = _whole(transfer, "bytes", 0, _MOST_BYTES)
            text = f"a {transfer['operation']} of {nbytes} bytes"
            under_way.setdefault(str(transfer["session"]), []).append(
                SessionTransfer(
                    f"{text} with {transfer['peer']}", (now - transfer["posted_ns"]) / 1e9
                )
            )
    return [
        SessionRecord(source, name, tuple(events.get(name, ())), tuple(under_way.get(name, ())))
        for name in sorted({*events, *under_way})
    ]


def _session_event(event: _Json, now: int) -> SessionEvent:
    what = f"{event['event']} {event['peer']}" if "peer" in event else str(event["event"])
    if "text" in event:
        what += f", {event['text']}" if "peer" in event else f" {event['text']}"
    if "times" in event:
        what += f" ({int(event['times'])} times)"
    return SessionEvent(what, (now - event["at_ns"]) / 1e9)


def _operation(entry: _Json, to_wall_s: float) -> Operation:
    return Operation(
        sequence=_whole(entry, "sequence", 0, _MOST_OPERATIONS),
        text=str(entry["operation"]),
        state=str(entry["state"]),
        issued_s=entry["issued_ns"] / 1e9 + to_wall_s,
        blamed=None if entry.get("blamed") is None else int(entry["blamed"]),
    )


def _wait(wait: _Json, sequences: dict[int, int | None]) -> Wait:
    return Wait(
        operation=str(wait["operation"]),
        sequence=sequences.get(wait["ticket"]),
        peer=int(wait["peer"]),
        seconds=float(wait["seconds"]),
    )

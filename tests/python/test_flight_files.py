# SPDX-License-Identifier: Apache-2.0
"""Files that `pccl debug` is given: a folder of records, and what is no record."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RECORD: dict[str, Any] = {
    "version": 1,
    "wall_ms": 20_000,
    "steady_ns": 20 * 10**9,
    "groups": [{"id": 7, "name": "tp", "rank": 0, "size": 2, "waits": []}],
    "entries": [
        {
            "ticket": 1,
            "group": 7,
            "sequence": 1,
            "operation": "all_reduce #1 (sum of 4 float32)",
            "state": "started",
            "issued_ns": 19 * 10**9,
        }
    ],
}


def debug(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pccl", "debug", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_folder_stands_for_the_records_in_it(tmp_path: Path) -> None:
    for rank in range(2):
        record = json.loads(json.dumps(RECORD))
        record["groups"][0]["rank"] = rank
        (tmp_path / f"flight-here-{rank}.json").write_text(json.dumps(record))
    (tmp_path / "notes.json").write_text("[]")
    done = debug(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Group tp of 2 ranks: all have called all_reduce #1")
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads(debug(tmp_path, "--json").stdout)
    assert len(found["files"]) == 2
    assert found["groups"] == [" ".join(done.stdout.split())]


SESSIONS: dict[str, Any] = {
    "events": [
        {"session": "decode-3", "event": "connected", "at_ns": 10**9, "peer": 'session "p-0"'},
        {
            "session": "decode-3",
            "event": "lost",
            "at_ns": 18 * 10**9,
            "peer": 'session "p-0" (process 12 on n1)',
            "text": "it has ended",
        },
        {
            "session": "decode-3",
            "event": "refused",
            "at_ns": 19 * 10**9,
            "text": "2 requests",
            "times": 9,
        },
    ],
    "transfers": [
        {
            "number": number,
            "session": "decode-3",
            "peer": 'session "p-1" (process 13 on n1)',
            "operation": "read",
            "bytes": 4096,
            "state": "completed" if number == 1 else "posted",
            "posted_ns": 17 * 10**9,
            "ended_ns": None,
        }
        for number in range(1, 7)
    ],
}


def test_a_session_reports_its_losses_and_waits(tmp_path: Path) -> None:
    file = tmp_path / "flight-here-1.json"
    file.write_text(changed("sessions", value=SESSIONS))
    found = json.loads(debug(file, "--json").stdout)
    assert len(found["groups"]) == 1
    one = 'a read of 4096 bytes with session "p-1" (process 13 on n1), for 3.0 s'
    assert found["sessions"] == [
        "Session decode-3 (flight-here-1.json): 5 transfers are under way: "
        f"{one}; {one}; {one}; and 2 more. "
        '2.0 s before: lost session "p-0" (process 12 on n1), it has ended. '
        "1.0 s before: refused 2 requests (9 times)."
    ]


def test_a_folder_without_records_is_an_error(tmp_path: Path) -> None:
    done = debug(tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"pccl: {tmp_path} has no flight records (flight-*.json)\n"


def changed(*path: str | int, value: object) -> str:
    """The record with another value at ``path``; without it, where that is None."""
    record = json.loads(json.dumps(RECORD))
    part = record
    for step in path[:-1]:
        part = part[step]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(record)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is not JSON (Expecting value: line 1 column 1"),
        ('{"version": 1,', "it is not JSON"),
        ("[1, 2]", "it holds a list, not an object"),
        ("{}", "it has no 'version'"),
        (changed("version", value=2), "its version is 2, and 1 is what this reads"),
        (changed("groups", value=None), "it has no 'groups'"),
        (changed("sessions", value={"events": []}), "it has no 'transfers'"),
        (changed("sessions", value=[]), "a field has another type"),
        (changed("groups", 0, "size", value=None), "it has no 'size'"),
        (changed("groups", 0, "size", value="two"), "'two'"),
        (changed("groups", 0, "size", value=[2]), "a field has another type"),
        (changed("groups", 0, "size", value=1e308), "not from 1 to 16777216"),
        (changed("groups", 0, "size", value=2**40), "its size is 1099511627776, not from 1 to"),
        (changed("groups", 0, "size", value=0), "its size is 0, not from 1 to 16777216"),
        (changed("groups", 0, "rank", value=-1), "its rank is -1, not from 0 to"),
        (changed("entries", 0, "sequence", value=-5), "its sequence is -5, not from 0"),
        (changed("entries", value=7), "a field has another type"),
        (changed("entries", 0, value="x"), "a field has another type"),
        (changed("entries", 0, "issued_ns", value=None), "it has no 'issued_ns'"),
        (changed("entries", 0, "blamed", value="nobody"), "'nobody'"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(
    content: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "flight-here-1.json"
    file.write_text(content)
    done = debug(file)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"pccl: {file} is no flight record: ")
    assert reason in line


def test_a_group_of_many_ranks_is_described_in_few_words(tmp_path: Path) -> None:
    file = tmp_path / "flight-here-1.json"
    file.write_text(changed("groups", 0, "size", value=1 << 24))
    done = debug(file)
    assert done.returncode == 0
    assert f" and {(1 << 24) - 1 - 64} more;" in " ".join(done.stdout.split())
    assert len(done.stdout) < 4000


def test_names_of_files_change_no_terminal(tmp_path: Path) -> None:
    error = debug(tmp_path / "a\x1b[31m\u202eb.json").stderr
    assert "a\\x1b[31m\\u202eb.json: No such file" in error
    assert "\x1b" not in error


def test_names_of_groups_change_no_terminal(tmp_path: Path) -> None:
    record = json.loads(json.dumps(RECORD))
    record["groups"][0]["name"] = "tp\x1b[31m\u202e"
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    assert r"Group tp\x1b[31m\u202e of 2 ranks" in debug(path).stdout


def test_bytes_and_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00\x80")
    assert "is no flight record: it is not JSON" in debug(tmp_path / "a.json").stderr
    missing = tmp_path / "missing.json"
    assert debug(missing).stderr == f"pccl: {missing}: No such file or directory\n"

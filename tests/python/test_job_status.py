# SPDX-License-Identifier: Apache-2.0
"""Answers to ``pccl status`` that are not as they should be; tests/multiproc asks real jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pccl import _core
from pccl.diagnostics import job_status

GROUP = {"id": 1, "name": "world", "rank": 0, "size": 2, "device": "cpu", "key": "00" * 16}
ENTRY = {"ticket": 1, "group": 1, "state": "started", "operation": "all_reduce #1 (8 float32)"}
TIMES = {"issued_ns": 5_000_000_000, "started_ns": None, "finished_ns": None, "sequence": 1}
ANSWER = {
    "version": 1,
    "host": "n0",
    "pid": 7,
    "wall_ms": 9_000,
    "steady_ns": 8_000_000_000,
    "groups": [GROUP | {"awaited": [1], "whole": True}],
    "entries": [ENTRY | TIMES],
    "next": None,
}
MEMBERS: dict[str, Any] = {"members": [], "next": None}


def requested(monkeypatch: pytest.MonkeyPatch, answer: bytes, members: bytes) -> job_status.Job:
    monkeypatch.setattr(
        _core, "request_status", lambda _door, group, _first, _timeout: members if group else answer
    )
    return job_status.query_job([("here",)], 1.0)


def test_a_good_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    job = requested(monkeypatch, json.dumps(ANSWER).encode(), json.dumps(MEMBERS).encode())
    ((seat, process),) = job.groups()[0]
    assert (process.host, process.pid, process.door) == ("n0", 7, "here")
    assert (seat.operation, seat.seconds, seat.awaited) == ("all_reduce #1 (8 float32)", 3.0, (1,))
    assert job.explain()[0].endswith(
        "rank 0 has called all_reduce #1 (8 float32); rank 0 is in it."
    )


def test_members_are_requested_again_while_their_group_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = {"rank": 1, "host": "n1", "pid": 8, "doors": ["there"]}
    held = json.dumps(MEMBERS).encode()
    lists = iter([held, held, json.dumps(MEMBERS | {"members": [member]}).encode()])

    def answer(door: str, group: bytes, _first: int, _timeout: float) -> bytes:
        of_group = next(lists, held) if group else b""
        return of_group or json.dumps(ANSWER | {"pid": 7 if door == "here" else 8}).encode()

    monkeypatch.setattr(_core, "request_status", answer)
    job = job_status.query_job([("here",)], 1.0)
    assert [process.pid for process in job.processes] == [7, 8]


def test_who_has_answered_is_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    member = {"rank": 1, "host": "n1", "pid": 8, "doors": ["there"]}
    held = json.dumps(MEMBERS).encode()
    lists = iter([json.dumps(MEMBERS | {"members": [member]}).encode()])

    def answer(door: str, group: bytes, _first: int, _timeout: float) -> bytes:
        if group:
            return next(lists, held)
        return json.dumps(ANSWER | {"pid": 7 if door == "here" else 8}).encode()

    monkeypatch.setattr(_core, "request_status", answer)
    query = job_status.RepeatedQuery([("here",)], 1.0)
    for _ in range(3):
        assert [process.pid for process in query().processes] == [7, 8]


def test_a_waiting_gpu_is_reported_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = {"ticket": 1, "operation": "all_reduce #1 (8 bfloat16)", "peer": 1, "seconds": 2.5}
    group = {k: v for k, v in GROUP.items() if k != "key"} | {"device": "cuda", "waits": [wait]}
    launched = ENTRY | TIMES | {"state": "started"}
    answer = json.dumps(ANSWER | {"groups": [group], "entries": [launched]}).encode()
    job = requested(monkeypatch, answer, b"")
    ((seat, _),) = job.groups()[0]
    assert (seat.device, seat.operation, seat.seconds) == ("cuda", wait["operation"], 2.5)
    assert seat.awaited == (1,)
    assert "the GPU of rank 0 waits in all_reduce #1 (8 bfloat16) for rank 1" in job.explain()[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 8000,
        b"\xff",
        json.dumps(ANSWER).encode()[:-9],
        *(
            json.dumps(ANSWER | changed).encode()
            for changed in [
                {"pid": None},
                {"pid": "x"},
                {"groups": 3},
                {"groups": [GROUP | {"rank": []}]},
                {"groups": [GROUP | {"awaited": 5}]},
                {"groups": [GROUP | {"waits": [{}]}]},
                {"entries": [{}]},
                {"entries": [ENTRY | TIMES | {"issued_ns": "x"}]},
                {"version": 2},
            ]
        ),
    ],
)
def test_a_bad_file_is_reported_in_a_line(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    job = requested(monkeypatch, answer, json.dumps(MEMBERS).encode())
    assert job.processes == ()
    (unheard,) = job.unheard
    assert unheard.name == "here"
    assert unheard.reason.startswith("the answer from here cannot be read")
    assert "\n" not in unheard.reason


@pytest.mark.parametrize(
    "members", [b"", b"{}", b'{"members": [{}], "next": null}', b'{"members": 3, "next": null}']
)
def test_bad_members_leave_the_answer(monkeypatch: pytest.MonkeyPatch, members: bytes) -> None:
    job = requested(monkeypatch, json.dumps(ANSWER).encode(), members)
    assert [process.pid for process in job.processes] == [7]


def test_a_list_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.dumps(ANSWER | {"next": 0}).encode()
    assert len(requested(monkeypatch, answer, json.dumps(MEMBERS).encode()).processes) == 1

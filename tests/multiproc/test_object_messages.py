# SPDX-License-Identifier: Apache-2.0
"""Objects between ranks, by pickle."""

from __future__ import annotations

import datetime
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl.communicator import objects
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

OBJECTS: list[Any] = [
    None,
    {"rank": 3, "when": datetime.date(2026, 2, 3), "nested": [(), {1, 2}]},
    "x" * 3_000_000,
]


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_objects_arrive_as_copies(tmp_path: Path, transports: str) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        if comm.rank == 0:
            for value in OBJECTS:
                comm.send_object(value, 1, tag=5)
            return OBJECTS
        return [comm.recv_object(0, tag=5) for _ in OBJECTS]

    sent, received = run_threads(tmp_path, 2, body, transports=transports)
    assert received == sent
    assert received[1] is not sent[1]


def test_objects_of_any_rank_come_whole(tmp_path: Path) -> None:
    """Number and bytes of one stay together, however those of several ranks mix."""

    def body(comm: pccl.Communicator) -> list[Any]:
        if comm.rank == 0:
            return [comm.recv_object() for _ in range(30)]
        for i in range(10):
            comm.send_object((comm.rank, i, "x" * (comm.rank * 100 + i)), 0)
        return []

    received, *_ = run_threads(tmp_path, 4, body)
    assert sorted(received) == [
        (rank, i, "x" * (rank * 100 + i)) for rank in (1, 2, 3) for i in range(10)
    ]
    for rank in (1, 2, 3):
        assert [i for who, i, _ in received if who == rank] == list(range(10))


@pytest.mark.parametrize("root", [0, 2])
def test_all_get_the_roots_object(tmp_path: Path, root: int) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        return [
            comm.broadcast_object(value if comm.rank == root else None, root) for value in OBJECTS
        ]

    assert run_threads(tmp_path, 3, body) == [OBJECTS] * 3


def test_an_array_where_an_object_was_expected_is_a_mismatch(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> str:
        if comm.rank == 1:
            comm.send(np.array([-4], dtype=np.int64), 0, async_op=True)
            return ""
        with pytest.raises(pccl.MismatchError) as raised:
            comm.recv_object(1)
        return str(raised.value)

    output, _ = run_threads(tmp_path, 2, body)
    assert "an object of -4 bytes was announced" in output
    assert len(output.splitlines()) == 1


def test_what_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    comm = pccl.Communicator()
    with pytest.raises(pccl.InvalidArgumentError, match="to itself"):
        comm.send_object(1, 0)
    with pytest.raises((pickle.PicklingError, TypeError, AttributeError)):
        comm.broadcast_object(lambda: 1)
    monkeypatch.setattr(objects, "MOST_BYTES", 1000)
    with pytest.raises(pccl.InvalidArgumentError, match="at most 1000 can be sent"):
        comm.broadcast_object(b"x" * 2000)


@pytest.mark.parametrize("value", [lambda: 1, b"x" * 2000])
def test_an_object_that_the_root_cannot_send_is_an_error_on_all_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    monkeypatch.setattr(objects, "MOST_BYTES", 1000)

    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(Exception, match=r"pickle") as raised:
            comm.broadcast_object(value, 1)
        comm.barrier()
        return type(raised.value).__name__ if comm.rank == 1 else str(raised.value)

    told, _, also_told = run_threads(tmp_path, 3, body)
    assert told == also_told == "rank 1, the root, cannot pickle its object: its own error says why"


@pytest.mark.parametrize("name", ["recv_object", "broadcast_object"])
def test_the_risk_is_documented(name: str) -> None:
    text = inspect.getdoc(getattr(pccl.Communicator, name)) or ""
    assert "pickle runs code that" in text

# SPDX-License-Identifier: Apache-2.0
"""What `pccl debug` says of groups on GPUs; of CPU ranks, tests/multiproc asks real ones."""

from __future__ import annotations

import json
import typing

import pytest

from pccl.diagnostics.flight import explain
from pccl.diagnostics.flight_files import load

if typing.TYPE_CHECKING:
    from pathlib import Path

ALL_REDUCE = "all_reduce #{} (sum of 1024 bfloat16)"


def entry(sequence: int, state: str) -> dict[str, typing.Any]:
    return {
        "ticket": 100 + sequence,
        "group": 7,
        "sequence": sequence,
        "operation": ALL_REDUCE.format(sequence),
        "state": state,
        "issued_ns": 10**9 * sequence,
        "started_ns": 10**9 * sequence,
        "finished_ns": None,
    }


def wait(sequence: int, peer: int, seconds: float) -> dict[str, typing.Any]:
    return {
        "ticket": 100 + sequence,
        "operation": ALL_REDUCE.format(sequence),
        "peer": peer,
        "seconds": seconds,
    }


def record_of(
    rank: int, entries: list[dict[str, typing.Any]], waits: list[dict[str, typing.Any]] | None
) -> dict[str, typing.Any]:
    """One group of three GPUs, as docs/reference/failure.md describes it."""
    group = {"id": 7, "name": "tp", "rank": rank, "size": 3, "global_ranks": [0, 1, 2]}
    group |= {"device": "cuda", "waits": waits or []}
    return {
        "version": 1,
        "host": "here",
        "pid": 1000 + rank,
        "wall_ms": 20_000,
        "steady_ns": 20 * 10**9,
        "reason": "SIGUSR1",
        "groups": [group],
        "entries": entries,
    }


def reported_of(tmp_path: Path, records: list[dict[str, typing.Any]]) -> str:
    loaded = []
    for rank, record in enumerate(records):
        file = tmp_path / f"{rank}.json"
        file.write_text(json.dumps(record))
        loaded += load(file).groups
    (text,) = explain(loaded)
    return text


def test_a_rank_that_has_not_called_what_others_wait_in(tmp_path: Path) -> None:
    waiting = [entry(1, "completed"), entry(2, "started"), entry(3, "queued")]
    text = reported_of(
        tmp_path,
        [
            record_of(0, waiting, [wait(2, 1, 12.3)]),
            record_of(1, [entry(1, "launched")], None),
            record_of(2, waiting, [wait(2, 1, 12.1)]),
        ],
    )
    assert text == (
        "Group tp of 3 GPUs: the GPUs of ranks 0, 2 wait in all_reduce #2 (sum of 1024 bfloat16)"
        " for rank 1, for 12.3 s; rank 1 has not called it: its last is all_reduce #1 (sum of 1024"
        " bfloat16), launched."
    )


def test_a_rank_whose_gpu_does_something_else(tmp_path: Path) -> None:
    text = reported_of(
        tmp_path,
        [
            record_of(0, [entry(1, "started")], [wait(1, 2, 4.0)]),
            record_of(1, [entry(1, "started")], [wait(1, 2, 4.0)]),
            record_of(2, [entry(1, "launched")], None),
        ],
    )
    assert "for rank 2, for 4.0 s; rank 2 has called it, and its GPU has not begun it" in text


def test_ranks_that_call_different_collectives(tmp_path: Path) -> None:
    other = entry(2, "started") | {"operation": "broadcast #2 (8 int32, root 0)"}
    text = reported_of(
        tmp_path,
        [
            record_of(0, [entry(1, "completed"), entry(2, "started")], [wait(2, 1, 1.0)]),
            record_of(1, [entry(1, "completed"), other], [wait(2, 0, 1.0)]),
        ],
    )
    assert "there is no record of rank 2" in text
    assert "rank 1 waits itself" in text
    assert "the programs differ at collective 2: rank 0 called all_reduce #2" in text


@pytest.mark.parametrize("state", ["launched", "captured"])
def test_gpus_that_do_not_wait(tmp_path: Path, state: str) -> None:
    text = reported_of(tmp_path, [record_of(rank, [entry(1, state)], None) for rank in range(3)])
    assert text == (
        "Group tp of 3 GPUs: all have called all_reduce #1 (sum of 1024 bfloat16), and no GPU waits"
        " for another."
    )

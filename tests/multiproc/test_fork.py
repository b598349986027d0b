# SPDX-License-Identifier: Apache-2.0
"""A child of fork() inherits groups, drops or uses them; parent and peers must not notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.ports import free_port

pytestmark = pytest.mark.multiproc

SCRIPTS = Path(__file__).with_name("scripts_for_fork.py")
LIMIT_S = 300
SOON_S = 10
TRANSPORTS = pytest.mark.parametrize("transports", ["shm", "tcp"])


def run_pair(way: str, rendezvous: str, transports: str) -> tuple[list[int], list[Any]]:
    """Run both ranks; give the exit codes of what was started, and what the ranks report."""
    environment = os.environ | {"PCCL_TRANSPORTS": transports}
    started = ["01"] if way.startswith("torch_") else ["0", "1"]
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPTS), way, ranks, rendezvous, transports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for ranks in started
    ]
    try:
        ends = [process.communicate(timeout=LIMIT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for _, error in ends:
        sys.stderr.write(error)
    reports = [json.loads(line) for out, _ in ends for line in out.splitlines()]
    return [process.returncode for process in processes], reports


@TRANSPORTS
@pytest.mark.parametrize(
    "way",
    [
        "the_child_exits_normally",
        "the_child_drops_the_group",
        "the_child_ends_the_group",
        "the_child_replaces_the_group",
        "the_child_of_the_child_exits",
        "the_child_uses_the_group",
        "children_come_while_a_thread_uses_the_group",
        "a_worker_is_started",
        "torch_child_exits_normally",
        "torch_child_destroys_the_group",
        "torch_child_uses_the_group",
        "torch_loads_data",
    ],
)
def test_the_parent_goes_on(way: str, transports: str, tmp_path: Path) -> None:
    codes, reports = run_pair(way, f"file://{tmp_path}/store", transports)
    assert set(codes) == {0}
    assert len(reports) == 2
    for report in reports:
        assert report["watched"], "sockets no longer end sleeps"
        assert report["busy"] == {}, "threads run while nothing happens"


@TRANSPORTS
def test_a_child_that_lives_on_keeps_nothing_open(transports: str) -> None:
    rendezvous = f"tcp://127.0.0.1:{free_port()}"
    codes, reports = run_pair("a_child_lives_on", rendezvous, transports)
    assert codes == [0, 0]
    assert [report["busy"] for report in reports] == [{}]


@TRANSPORTS
def test_a_child_does_not_hide_the_end_of_its_parent(transports: str, tmp_path: Path) -> None:
    codes, reports = run_pair(
        "a_rank_is_killed_whose_child_lives_on", f"file://{tmp_path}/store", transports
    )
    assert codes == [0, -signal.SIGKILL]
    assert [report["blamed"] for report in reports] == [1]
    assert reports[0]["seconds"] < SOON_S

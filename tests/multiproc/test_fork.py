"""A child of fork() inherits groups, drops or uses them; parent and peers must not notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.multiproc

SCRIPTS = Path(__file__).with_name("scripts_for_fork.py")
WAYS = [
    "the_child_exits_normally",
    "the_child_drops_the_group",
    "the_child_ends_the_group",
    "the_child_replaces_the_group",
    "the_child_of_the_child_exits",
    "the_child_uses_the_group",
]


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("way", WAYS)
def test_the_parent_goes_on(way: str, transports: str, tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPTS), way, str(rank), f"file://{tmp_path}/store", transports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in ranks:
            out, error = process.communicate(timeout=100)
            assert process.returncode == 0, error
            found = json.loads(out.splitlines()[0])
            assert found["watched"], "sockets no longer end sleeps"
            assert found["busy"] == {}, "threads run while nothing happens"
    finally:
        for process in ranks:
            process.kill()
            process.wait()

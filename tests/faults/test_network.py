# SPDX-License-Identifier: Apache-2.0
"""The runner of the matrix leaves no network namespaces, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from faults import network

if TYPE_CHECKING:
    from collections.abc import Iterator

# alone: any runner removes the namespaces of those that were killed.
pytestmark = [pytest.mark.multiproc, pytest.mark.alone]
TESTS = Path(__file__).parents[1]
MARK = "PCCL_TEST_RUNNER"
CELL = "link_down/tcp/barrier/3/1"


@contextlib.contextmanager
def runner() -> Iterator[subprocess.Popen[bytes]]:
    """Give a runner that has made the namespaces of its cell."""
    reason = network.why_no_namespaces()
    if reason:
        pytest.skip(reason)
    path = f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": path, MARK: str(os.getpid())}
    command = [sys.executable, "-m", "faults.matrix", *(f"--cell={CELL}" for _ in range(4))]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not network.namespaces_of(process.pid):
            assert process.poll() is None, "the runner has ended"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def still_running() -> list[str]:
    """Return the processes of our runners: what a killed one had begun goes on for a moment."""
    mark = f"{MARK}={os.getpid()}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
    return found


def await_quiet() -> None:
    """Wait until none is running in several looks: one that just starts shows no environment."""
    deadline = time.monotonic() + 60
    quiet = 0
    while quiet < 10:
        left = still_running()
        assert time.monotonic() < deadline, left
        quiet = 0 if left else quiet + 1
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_runner_in_order(number: signal.Signals) -> None:
    with runner() as process:
        os.killpg(process.pid, number)
        assert process.wait(30) == 128 + number
        assert network.namespaces_of(process.pid) == []


def test_the_namespaces_of_a_killed_runner_are_removed_by_the_next() -> None:
    with runner() as process:
        process.kill()
        process.wait()
        await_quiet()
        assert network.namespaces_of(process.pid)
        network.remove_abandoned.cache_clear()
        with network.joined_namespaces():
            assert network.namespaces_of(os.getpid())
            assert network.namespaces_of(process.pid) == []
    assert network.namespaces_of(os.getpid()) == []

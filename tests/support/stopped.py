# SPDX-License-Identifier: Apache-2.0
"""Waits for processes of this host to be stopped (SIGSTOP takes its time on a busy machine)."""

from __future__ import annotations

import time
from pathlib import Path


def state_of(pid: int) -> str:
    """Return the letter by which the kernel names what a process does, as proc(5) has it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def await_stopped(pid: int, seconds: float = 60) -> None:
    """Return once the process is stopped; TimeoutError where it is not."""
    deadline = time.monotonic() + seconds
    while (state := state_of(pid)) != "T":
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} is not stopped after {seconds} s, but in {state}")
        time.sleep(0.01)

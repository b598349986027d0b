# SPDX-License-Identifier: Apache-2.0
"""Processes of sessions (setsid(2)), from /proc.

As a program, this module kills sessions at the end of its standard input: when the process with the
other end of that pipe has ended for any reason. It imports only the standard library, so that it
starts without site-packages.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

__all__ = ["members_of", "signal_all"]

_PROC = Path("/proc")
_ENDED = ("Z", "X")
_MOST_ROUNDS = 100  # of signals: a member may start a process before the signal arrives


def members_of(sessions: set[int]) -> list[int]:
    """Return the processes of sessions that have not ended."""
    found = []
    for stat in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # the process has ended
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
            if int(session) in sessions and state not in _ENDED:
                found.append(int(stat.parent.name))
    return found


def signal_all(sessions: set[int], number: int) -> int:
    """Signal all processes of sessions; return their number."""
    members = members_of(sessions)
    for pid in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(members)


def _kill_at_end_of(lines: list[str]) -> None:
    sessions = {int(line) for line in lines}
    for _ in range(_MOST_ROUNDS):
        if signal_all(sessions, signal.SIGKILL) == 0:
            return


if __name__ == "__main__":
    _kill_at_end_of(sys.stdin.readlines())

# SPDX-License-Identifier: Apache-2.0
"""What a process does while its user does nothing, as the kernel tells it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 10


def _of_threads(file: str) -> Iterator[tuple[str, str]]:
    """Yield the number of each thread of this process, and what the kernel says of it."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            yield task.name, (task / file).read_text()


def threads_of_pccl() -> list[str]:
    """Name the threads of this process that the library has started."""
    names = (name.strip() for _, name in _of_threads("comm"))
    return [name for name in names if name.startswith("pccl")]


def _seconds_by_thread() -> dict[str, float]:
    seconds = {}
    for number, stat in _of_threads("stat"):
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        seconds[f"{name} {number}"] = (int(fields[11]) + int(fields[12])) / TICKS
    return seconds


def busy_threads(seconds: float = 1.0, share: float = 0.1) -> dict[str, float]:
    """Sleep, and return the threads that meanwhile took more of a core than ``share``."""
    before, begun = _seconds_by_thread(), time.monotonic()
    time.sleep(seconds)
    after, passed = _seconds_by_thread(), time.monotonic() - begun
    taken = {thread: now - before.get(thread, 0.0) for thread, now in after.items()}
    return {thread: each for thread, each in taken.items() if each > share * passed}


Watched = dict[str, set[tuple[int, int]]]


def watched() -> Watched:
    """Return what each epoll set of this process watches, by the number of the set.

    That is descriptors, each with its inode: of sockets none has that of another.
    """
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            kind = str(entry.readlink())
            lines = Path(f"/proc/self/fdinfo/{entry.name}").read_text().splitlines()
        except OSError:
            continue  # the folder's own
        if kind == "anon_inode:[eventpoll]":
            found[entry.name] = {_target(line) for line in lines if line.startswith("tfd")}
    return found


def still_watched(before: Watched) -> bool:
    """Wait until the epoll sets watch what they did before; False if that does not come to be.

    A peer that waits asks how this process fares, on a connection of its own, which is watched for
    a moment: of those in ``before`` only what this process still has open counts.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if watched() == {number: set(filter(_is_open, fds)) for number, fds in before.items()}:
            return True
        time.sleep(0.01)
    return False


def _target(line: str) -> tuple[int, int]:
    """Read ``tfd: 7 events: 1 data: 0 pos:0 ino:3a51 sdev:8``."""
    return int(line.split()[1]), int(line.partition("ino:")[2].split()[0], 16)


def _is_open(target: tuple[int, int]) -> bool:
    descriptor, inode = target
    try:
        return os.fstat(descriptor).st_ino == inode
    except OSError:
        return False

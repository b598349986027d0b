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


def watched() -> dict[str, list[str]]:
    """Return what each epoll set of this process watches, by the number of the set."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            kind = str(entry.readlink())
            lines = Path(f"/proc/self/fdinfo/{entry.name}").read_text().splitlines()
        except OSError:
            continue  # the folder's own
        if kind == "anon_inode:[eventpoll]":
            found[entry.name] = sorted(line.split()[1] for line in lines if line.startswith("tfd"))
    return found

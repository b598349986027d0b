# SPDX-License-Identifier: Apache-2.0
"""Counts of this process's descriptors, threads and shared memory mappings."""

from __future__ import annotations

import gc
import time
from pathlib import Path

__all__ = ["at_rest", "left_since"]

_REST = 1.0  # seconds; the interval at which a session checks its peers
_PATIENCE = 30.0  # seconds, for a loaded machine
_BETWEEN_COUNTS = 0.02  # seconds


def at_rest(patience: float = _PATIENCE) -> dict[str, int]:
    """Return the counts after they have been constant for 1 second.

    Lost connections are dropped with a delay, and objects in reference cycles only by the garbage
    collector. A count that includes some of them would hide an equal number of later leaks.
    Therefore the call collects garbage first, and raises TimeoutError if the counts still change
    after ``patience`` seconds.
    """
    gc.collect()
    held, since = _held(), time.monotonic()
    until = since + patience
    while (now := time.monotonic()) - since < _REST:
        if now > until:
            raise TimeoutError(
                f"what this process holds still changes after {patience:g} s: {held}"
            )
        time.sleep(_BETWEEN_COUNTS)
        if (latest := _held()) != held:
            held, since = latest, time.monotonic()
    return held


def left_since(before: dict[str, int], patience: float = _PATIENCE) -> list[str]:
    """Return the increases of the counts over an earlier result of ``at_rest()``.

    An entry is, for example, "2 descriptors". The list is empty if all increases disappear within
    ``patience`` seconds.
    """
    until = time.monotonic() + patience
    while True:
        more = {name: count - before[name] for name, count in at_rest().items()}
        left = [f"{count} {name}" for name, count in more.items() if count > 0]
        if not left or time.monotonic() > until:
            return left


def _held() -> dict[str, int]:
    process = Path("/proc/self")
    maps = (process / "maps").read_text().splitlines()
    return {
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        "mappings of shared memory": sum("/memfd:pccl" in line for line in maps),
    }

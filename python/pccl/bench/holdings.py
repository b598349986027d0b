# SPDX-License-Identifier: Apache-2.0
"""What this process holds of what connections take: descriptors, threads, and shared memory."""

from __future__ import annotations

import gc
import time
from pathlib import Path

__all__ = ["at_rest", "left_since"]

_REST = 1.0  # seconds; a session looks after its peers as often
_PATIENCE = 30.0  # seconds, on a machine that does much else
_BETWEEN_COUNTS = 0.02  # seconds


def at_rest(patience: float = _PATIENCE) -> dict[str, int]:
    """Count what there is once that has not changed for a second, in at most so many seconds.

    Connections that were lost are dropped a moment later, and objects that refer to each other when
    Python looks for these: a count that has some of either hides as many that are left behind after
    it. So garbage goes first, and a count that still changes is a TimeoutError.
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
    """Name what there is more of, at rest, than ``at_rest()`` counted before.

    Such as "2 descriptors"; nothing where all has gone within so many seconds.
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

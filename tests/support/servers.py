# SPDX-License-Identifier: Apache-2.0
"""Programs that run while tests do: their start, and their end by their pid."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 20.0  # seconds for servers to start or end


def await_start(is_there: Any, what: str, log: Path) -> None:
    """Wait until it is there; an error shows the end of its log."""
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        if time.monotonic() > deadline:
            output = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise RuntimeError(f"{what} has not started within {PATIENCE:.0f} s: {output}")
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End it."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

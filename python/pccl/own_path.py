# SPDX-License-Identifier: Apache-2.0
"""Processes of Python that import what this one can, and nothing from the working directory.

``python -c``, which multiprocessing's spawn uses, looks for modules there first.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["command_for", "start"]

_SAFE_PATH = "PYTHONSAFEPATH"  # of Python 3.11; 3.10 has nothing of the kind
_lock = threading.Lock()


def start(process: BaseProcess) -> None:
    """Start a process of spawn, which takes over ``sys.path`` later."""
    with _lock:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            process.start()
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before


def command_for(code: str) -> list[str]:
    """Return what runs a program of one line with the ``sys.path`` of this process."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]

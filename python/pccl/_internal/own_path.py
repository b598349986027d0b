# SPDX-License-Identifier: Apache-2.0
"""Python processes with the module path of this one, without the working directory.

``python -c``, which multiprocessing's spawn uses, searches the working directory first.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["command_for", "start"]

_SAFE_PATH = "PYTHONSAFEPATH"  # from Python 3.11 on; 3.10 ignores it
_lock = threading.Lock()


def start(process: BaseProcess) -> None:
    """Start a process of spawn, which copies ``sys.path`` of this process later."""
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
    """Return the command for a one-line program with the ``sys.path`` of this process."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]

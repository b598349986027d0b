# SPDX-License-Identifier: Apache-2.0
"""End of a rank together with the process of the launcher that started it.

A launcher that is killed cannot end its ranks. They would go on without output, and hold their
cores and their memory.
"""

from __future__ import annotations

import os
import select
import signal
import threading

__all__ = ["end_with_parent"]


def end_with_parent() -> bool:
    """Send SIGTERM to this process when its parent ends; return False where that is not possible.

    A thread waits in the kernel. The parent is a whole process: threads of it may end.
    """
    parent = os.getppid()
    try:
        descriptor = os.pidfd_open(parent)
    except (OSError, AttributeError):  # Linux before 5.3, or a system call filter
        return False
    watcher = threading.Thread(
        target=_wait_for_end, args=(descriptor,), name="pccl-launcher", daemon=True
    )
    watcher.start()
    return True


def _wait_for_end(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)

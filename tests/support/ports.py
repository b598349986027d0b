# SPDX-License-Identifier: Apache-2.0
"""Ports for tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket

# Those from 32768 on the kernel gives to whoever asks for any, between our look and our use.
FIRST = 10_000
OF_A_WORKER = 1_000
WORKERS = 22


def _ports() -> itertools.cycle[int]:
    """Give the ports of this worker of pytest-xdist, from one of them on."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + worker % WORKERS * OF_A_WORKER
    begin = random.SystemRandom().randrange(OF_A_WORKER)
    return itertools.cycle([first + (begin + i) % OF_A_WORKER for i in range(OF_A_WORKER)])


_own = _ports()


def free_port() -> int:
    """Give a port of the loopback interface at which nobody listens now."""
    for port in itertools.islice(_own, OF_A_WORKER):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("all ports for tests are in use")

"""What a message between two ranks costs, as pccl.simulator.Speed has it: start, hop, bandwidth."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pccl._core import Communicator

SMALL, LARGE = 8, 512 << 10  # bytes
TRAIN = 64  # messages behind each other
ROUNDS = 15


def measured_speed(comm: Communicator) -> tuple[float, float, float]:
    """Return bytes a second, and the seconds of start and hop, of messages from rank 0 to rank 1.

    Every rank of ``comm`` calls it; rank 0's is the answer. The least of some rounds each: a small
    message takes start and hop; each of a train of them, start; a large one, its bytes besides.
    """
    echo = one_way(comm, SMALL, 1)
    there = one_way(comm, SMALL, TRAIN) - echo / 2
    start = max((there - echo / 2) / (TRAIN - 1), 0.0)
    large = one_way(comm, LARGE, 1) - echo
    return LARGE / large, start, max(echo / 2 - start, 0.0)


def one_way(comm: Communicator, nbytes: int, messages: int) -> float:
    """Return the seconds until rank 1 has so many messages, and rank 0 a small one in return."""
    x, reply = np.zeros(nbytes, np.uint8), np.zeros(SMALL, np.uint8)
    times = []
    for _ in range(ROUNDS):
        comm.barrier()
        begin = time.perf_counter()
        if comm.rank == 0:
            for sent in [comm.send(x, 1, async_op=True) for _ in range(messages)]:
                sent.wait()
            comm.recv(reply, 1)
        elif comm.rank == 1:
            for _ in range(messages):
                comm.recv(x, 0)
            comm.send(reply, 0)
        times.append(time.perf_counter() - begin)
    return min(times)

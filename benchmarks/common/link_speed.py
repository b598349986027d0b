# SPDX-License-Identifier: Apache-2.0
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


def measured_speed(comm: Communicator, *, by_all: bool = False) -> tuple[float, float, float]:
    """Return bytes a second, and the seconds of start and hop, of messages from rank 0 to rank 1.

    Every rank of ``comm`` calls it; rank 0's is the answer. ``by_all``: all other pairs of ranks do
    the same at the same time, so that ranks which share cores take turns, as in a collective. The
    least of some rounds each: a small message takes start and hop; each of a train of them, start;
    a large one, its bytes besides.
    """
    pairs = comm.world_size // 2 if by_all else 1
    echo = one_way(comm, SMALL, 1, pairs)
    there = one_way(comm, SMALL, TRAIN, pairs) - echo / 2
    start = max((there - echo / 2) / (TRAIN - 1), 0.0)
    large = one_way(comm, LARGE, 1, pairs) - echo
    return LARGE / large, start, max(echo / 2 - start, 0.0)


def one_way(comm: Communicator, nbytes: int, messages: int, pairs: int) -> float:
    """Return the seconds until odd ranks have so many messages, and even ones a small one back."""
    peer, is_in = comm.rank ^ 1, comm.rank < 2 * pairs
    x, reply = np.zeros(nbytes, np.uint8), np.zeros(SMALL, np.uint8)
    times = []
    for _ in range(ROUNDS):
        comm.barrier()
        begin = time.perf_counter()
        if is_in and comm.rank % 2 == 0:
            for sent in [comm.send(x, peer, async_op=True) for _ in range(messages)]:
                sent.wait()
            comm.recv(reply, peer)
        elif is_in:
            for _ in range(messages):
                comm.recv(x, peer)
            comm.send(reply, peer)
        times.append(time.perf_counter() - begin)
    return min(times)

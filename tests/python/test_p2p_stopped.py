# SPDX-License-Identifier: Apache-2.0
"""Peers that are stopped at any point of a write, and go on later: memory is its owner's alone."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from pccl import p2p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

NBYTES = 24 << 20
BLOCK = 4096
ROUNDS = 12
PATIENCE = 60.0


def write_on(pipe: Connection, info: bytes) -> None:
    """Write to each memory that is told, in one way and another, until it has ended."""
    with p2p.Session("writer", transports="shm") as session:
        session.load(info)
        mine = session.register(np.full(NBYTES, 9, np.uint8))
        pipe.send(os.getpid())
        while (reported := pipe.recv()) is not None:
            remote = session.import_memory("owner", reported)
            starts = np.random.default_rng(len(reported)).permutation(NBYTES // BLOCK) * BLOCK
            scattered = np.stack([starts, np.full(starts.size, BLOCK)], axis=1)
            plan = session.prepare(mine, scattered, remote, scattered)
            try:
                while True:
                    session.write(mine, remote).wait(PATIENCE)
                    session.post_write(plan).wait(PATIENCE)
            except pccl.UnavailableError:
                pipe.send("ended")


@pytest.fixture
def writer() -> Iterator[tuple[p2p.Session, Connection, int]]:
    with p2p.Session("owner", transports="shm") as owner:
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        process = context.Process(
            target=write_on, args=(other, owner.connection_info()), daemon=True
        )
        process.start()
        yield owner, pipe, pipe.recv()
        pipe.send(None)
        process.join(PATIENCE)
        process.kill()


@pytest.mark.parametrize("way", ["mapped", "by the kernel"])
def test_a_writer_that_was_stopped_writes_nothing_after_the_end(writer, way):
    owner, pipe, pid = writer
    chance = random.Random(7)
    for _ in range(ROUNDS):
        mine = np.zeros(NBYTES, np.uint8)
        memory = owner.allocate(NBYTES) if way == "mapped" else owner.register(mine)
        if way == "mapped":
            mine = memory.array()
        pipe.send(memory.descriptor().serialize())
        while not mine[-1]:  # it has begun
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        os.kill(pid, signal.SIGSTOP)
        memory.deregister()
        before = mine.copy()
        assert set(np.unique(before)) <= {0, 9}
        mine[:] = 7
        os.kill(pid, signal.SIGCONT)
        assert pipe.recv() == "ended"
        assert (mine == 7).all()

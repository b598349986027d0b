# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of one process, as in a notebook: any number of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_collectives_and_messages(tmp_path: Path, size: int, transports: str) -> None:
    generator = np.random.default_rng(size)
    given = generator.integers(-1000, 1000, size=(size, 300_000)).astype(np.float64)

    def body(comm: pccl.Communicator) -> None:
        rank = comm.rank
        x = given[rank].copy()
        comm.all_reduce(x)
        assert np.array_equal(x, given.sum(axis=0))
        all_of = np.empty(size * 300_000)
        comm.all_gather(all_of, given[rank])
        assert np.array_equal(all_of.reshape(size, -1), given)
        turned = np.empty(300_000)
        outgoing = comm.send(given[rank], (rank + 1) % size, async_op=True)
        comm.recv(turned, (rank - 1) % size)
        outgoing.wait()
        assert np.array_equal(turned, given[(rank - 1) % size])

    run_threads(tmp_path, size, body, transports=transports)


def test_one_that_leaves_is_lost_to_the_others(tmp_path: Path) -> None:
    """And to them alone: they still reach each other in a smaller group."""
    met = threading.Barrier(3)

    def body(comm: pccl.Communicator) -> None:
        met.wait()
        if comm.rank == 1:
            comm.shutdown()
            return
        with pytest.raises(pccl.PeerLostError) as raised:
            comm.all_reduce(np.ones(8))
        assert raised.value.rank == 1
        smaller = comm.shrink([1])
        x = np.ones(4)
        smaller.all_reduce(x)
        assert (x == 2).all()

    def be_rank(rank: int) -> None:
        body(
            pccl.Communicator(
                rank=rank, world_size=3, rendezvous=f"file://{tmp_path}/store", timeout=60.0
            )
        )

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(be_rank, rank) for rank in range(3)]:
            future.result(timeout=120)


PROCESS = """
import sys
import threading

import numpy as np
import pccl

first, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sums = []


def be_rank(rank):
    comm = pccl.Communicator(rank=rank, world_size=size, rendezvous=store, timeout=60.0)
    x = np.full(100_000, rank + 1.0)
    comm.all_reduce(x)
    sums.append(x.mean())
    comm.barrier()


threads = [threading.Thread(target=be_rank, args=(first + i,)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sums == [size * (size + 1) / 2] * 2, sums
"""


def test_two_processes_of_two_threads(tmp_path: Path) -> None:
    store = f"file://{tmp_path}/store"
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(first), "4", store])
        for first in (0, 2)
    ]
    for process in processes:
        assert process.wait(timeout=60) == 0

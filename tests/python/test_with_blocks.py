# SPDX-License-Identifier: Apache-2.0
"""Groups that end with a ``with`` block, and what they and events print as."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl

if TYPE_CHECKING:
    from pathlib import Path


def test_the_end_of_the_block_shuts_the_group_down() -> None:
    with pccl.Communicator() as comm:
        x = np.ones(4)
        comm.all_reduce(x)
    with pytest.raises(pccl.Error):
        comm.all_reduce(x)


def test_peers_receive_the_reason_that_ended_the_block(tmp_path: Path) -> None:
    def be_rank(rank: int) -> str:
        group = pccl.Communicator(
            rank=rank, world_size=2, rendezvous=f"file://{tmp_path}/store", timeout=20.0
        )
        try:
            with group as comm:
                comm.barrier()
                if rank == 1:
                    raise ArithmeticError("as it happens")
                comm.all_reduce(np.ones(4))
        except (ArithmeticError, pccl.Error) as error:
            return f"{type(error).__name__}: {error}"
        return "went on"

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(be_rank, range(2))
    assert second == "ArithmeticError: as it happens"
    assert first.startswith("PeerLostError: ")
    assert "ArithmeticError ended the group's with block" in first


def test_groups_and_events_have_a_repr() -> None:
    comm = pccl.Communicator(name="mine")
    assert repr(comm) == '<pccl.Communicator "mine": rank 0 of 1>'
    event = comm.recv(np.ones(4), 0, async_op=True)
    assert repr(event) == "<pccl.Event in flight>"
    comm.send(np.ones(4), 0)
    event.wait()
    assert repr(event) == "<pccl.Event done>"
    failed = comm.recv(np.ones(4), 0, async_op=True)
    comm.shutdown()
    assert repr(failed).startswith("<pccl.Event failed: ")

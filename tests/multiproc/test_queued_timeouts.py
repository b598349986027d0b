# SPDX-License-Identifier: Apache-2.0
"""Operations behind others that have no time limit: each ends at its own."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.multiproc

PATIENCE_S = 20  # an operation that has not ended by then waits for the one before it
LARGE = 10_000_000  # elements, more than links hold


def reduce_two(comm: pccl.Communicator) -> None:
    comm.all_reduce(np.ones(4), async_op=True, timeout=math.inf)
    comm.all_reduce(np.ones(4), timeout=0.3)


def reduce_three(comm: pccl.Communicator) -> None:
    comm.all_reduce(np.ones(4), async_op=True, timeout=math.inf)
    behind = comm.all_reduce(np.ones(4), async_op=True, timeout=0.3)
    comm.all_reduce(np.ones(4), async_op=True, timeout=math.inf)
    behind.wait()


def send_two(comm: pccl.Communicator) -> None:
    comm.send(np.ones(LARGE), 1, async_op=True, timeout=math.inf)
    comm.send(np.ones(4), 1, timeout=0.3)


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("call", [reduce_two, reduce_three, send_two])
def test_an_operation_behind_another_ends_at_its_own_timeout(
    tmp_path: Path, call: Callable[[pccl.Communicator], None], transports: str
) -> None:
    has_ended = threading.Event()

    def body(comm: pccl.Communicator) -> bool:
        if comm.rank == 1:
            in_time = has_ended.wait(PATIENCE_S)
            comm.abort()
            return in_time
        with pytest.raises(pccl.Error) as raised:
            call(comm)
        has_ended.set()
        return isinstance(raised.value, pccl.TimeoutError)

    found = run_threads(tmp_path, 2, body, transports=transports, ends_well=False)
    assert found == [True, True]

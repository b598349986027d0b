# SPDX-License-Identifier: Apache-2.0
"""``await event``, and ``Event.add_done_callback``."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc
PATIENCE_S = 30.0


def test_an_awaited_collective_leaves_its_result(tmp_path: Path) -> None:
    async def sums(comm: pccl.Communicator) -> list[float]:
        arrays = [np.full(100_000, float(comm.rank + i)) for i in range(4)]
        events = [comm.all_reduce(x, async_op=True) for x in arrays]
        for event in events:
            await event
        return [float(x[0]) for x in arrays]

    found = run_threads(tmp_path, 3, lambda comm: asyncio.run(sums(comm)))
    assert found == [[3.0, 6.0, 9.0, 12.0]] * 3


def test_other_tasks_run_while_one_awaits() -> None:
    """A receive that only another task's send can end."""
    comm = pccl.Communicator()
    x = np.zeros(3)

    async def receive() -> None:
        await comm.recv(x, 0, async_op=True)

    async def send() -> None:
        await asyncio.sleep(0.05)
        await comm.send(np.arange(3.0), 0, async_op=True)

    async def both() -> None:
        await asyncio.wait_for(asyncio.gather(receive(), send()), PATIENCE_S)

    asyncio.run(both())
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_await_raises_how_the_operation_failed() -> None:
    comm = pccl.Communicator()

    async def receive() -> None:
        event = comm.recv(np.zeros(3), 0, async_op=True)
        asyncio.get_running_loop().call_later(0.05, comm.abort, "enough")
        await event

    with pytest.raises(pccl.AbortedError, match="enough"):
        asyncio.run(asyncio.wait_for(receive(), PATIENCE_S))


def test_a_task_that_is_cancelled_leaves_the_operation_on_its_way() -> None:
    comm = pccl.Communicator()
    x = np.zeros(1)
    event = comm.recv(x, 0, async_op=True)

    async def give_up() -> None:
        await asyncio.wait_for(event, 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert not event.is_done()
    comm.send(np.ones(1), 0)
    event.wait(PATIENCE_S)
    assert x[0] == 1


def test_a_done_event_can_be_awaited_without_an_event_loop_running_meanwhile() -> None:
    comm = pccl.Communicator()
    event = comm.all_reduce(np.ones(1), async_op=True)
    event.wait()

    async def look() -> str:
        await event
        return "done"

    assert asyncio.run(look()) == "done"


def test_callbacks_come_once_with_the_event_on_another_thread() -> None:
    comm = pccl.Communicator()
    reported: queue.Queue[tuple[pccl.Event, bool, threading.Thread]] = queue.Queue()
    event = comm.recv(np.zeros(1), 0, async_op=True)
    event.add_done_callback(lambda e: reported.put((e, e.is_done(), threading.current_thread())))
    assert reported.empty()
    comm.send(np.ones(1), 0)
    who, is_done, thread = reported.get(timeout=PATIENCE_S)
    assert who is event
    assert is_done
    assert thread is not threading.current_thread()
    event.add_done_callback(lambda e: reported.put((e, e.is_done(), threading.current_thread())))
    assert reported.get(timeout=PATIENCE_S)[0] is event
    assert reported.empty()


def test_callbacks_come_in_the_order_of_ends() -> None:
    comm = pccl.Communicator()
    reported: queue.Queue[int] = queue.Queue()
    for tag in range(50):
        event = comm.recv(np.zeros(1), 0, tag, async_op=True)
        event.add_done_callback(lambda _, tag=tag: reported.put(tag))
    order = list(np.random.default_rng(3).permutation(50))
    for tag in order:
        comm.send(np.ones(1), 0, int(tag))
    assert [reported.get(timeout=PATIENCE_S) for _ in order] == order


def test_a_callback_that_raises_is_logged_and_holds_nothing_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    comm = pccl.Communicator()
    reported: queue.Queue[str] = queue.Queue()

    def fail(_event: pccl.Event) -> None:
        raise ArithmeticError("as it happens")

    with caplog.at_level(logging.ERROR, logger="pccl"):
        for callback in (fail, lambda _: reported.put("next")):
            event = comm.all_reduce(np.ones(1), async_op=True)
            event.add_done_callback(callback)
        assert reported.get(timeout=PATIENCE_S) == "next"
    assert "as it happens" in caplog.text


def test_a_child_of_fork_has_a_thread_of_its_own_for_what_was_done_before() -> None:
    reported: queue.Queue[str] = queue.Queue()
    event = pccl.Communicator().all_reduce(np.ones(1), async_op=True)
    event.add_done_callback(lambda _: reported.put("parent"))
    assert reported.get(timeout=PATIENCE_S) == "parent"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            event.add_done_callback(lambda _: reported.put("child"))
            status = 0 if reported.get(timeout=PATIENCE_S) == "child" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

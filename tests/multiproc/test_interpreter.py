# SPDX-License-Identifier: Apache-2.0
"""What the rest of an interpreter sees of calls over buffers: its threads, signals and memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from support.launch import die_with_parent, warm_processes
from support.ports import free_port
from support.stopped import await_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.multiproc

LIMIT_S = 100.0
SOON_S = 10.0  # a third of what connecting may take
TRANSPORTS = pytest.mark.parametrize("transports", ["shm", "tcp"])


def _child(body: Callable[..., Any], rank: int, options: dict[str, Any], failures: Any) -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.freeze()  # what is there now need not be looked at a thousand times
    try:
        body(pccl.Communicator(rank=rank, world_size=2, timeout=LIMIT_S, **options))
    except BaseException:
        failures.put(f"rank {rank}:\n{traceback.format_exc()}")
        raise


def run_pair(body: Callable[..., Any], tmp_path: Path, **options: Any) -> None:
    """Run ``body(comm)`` in two processes and report what failed."""
    context = warm_processes()
    failures = context.SimpleQueue()
    options["rendezvous"] = f"file://{tmp_path}/store"
    ranks = [
        context.Process(target=_child, args=(body, rank, options, failures)) for rank in range(2)
    ]
    finish(ranks, failures)


def finish(ranks: list[Any], failures: Any) -> None:
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(LIMIT_S)
        if process.is_alive():
            process.kill()
            failures.put(f"{process.name} did not end")
    assert failures.empty(), failures.get()
    assert [process.exitcode for process in ranks] == [0, 0]


@contextmanager
def beside_a_stopped_rank(comm: pccl.Communicator) -> Iterator[bool]:
    """Give True on rank 0 while rank 1, to which it has not talked yet, is stopped."""
    process = np.array([os.getpid()])
    comm.broadcast(process, root=1)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        yield False
        return
    await_stopped(int(process[0]))
    try:
        yield True
    finally:
        os.kill(int(process[0]), signal.SIGCONT)


def other_threads_go_on(comm: pccl.Communicator) -> None:
    """One of them, once it has run a hundred times, ends the wait."""

    def click() -> None:
        for _ in range(100):
            time.sleep(0.001)
        comm.abort("a hundred clicks")

    with beside_a_stopped_rank(comm) as is_waiting:
        if is_waiting:
            clicker = threading.Thread(target=click)
            clicker.start()
            with pytest.raises(pccl.AbortedError):
                comm.send(np.ones(3), 1)
            clicker.join()


@TRANSPORTS
def test_other_threads_go_on_while_a_message_connects(transports: str, tmp_path: Path) -> None:
    run_pair(other_threads_go_on, tmp_path, transports=transports)


def asynchronous_calls_return(comm: pccl.Communicator) -> None:
    x, y = np.full(3, comm.rank + 1.0), np.full(3, comm.rank + 1.0)
    inbox = np.empty(3)
    with beside_a_stopped_rank(comm) as is_waiting:
        begun = time.monotonic()
        events = [comm.all_reduce(x, async_op=True), comm.send(y, 1 - comm.rank, async_op=True)]
        if is_waiting:
            assert time.monotonic() - begun < SOON_S
            assert not any(event.is_done() for event in events)
    comm.recv(inbox, 1 - comm.rank)
    for event in events:
        event.wait()
    assert x.tolist() == [3.0, 3.0, 3.0]
    assert inbox.tolist() == [2.0 - comm.rank] * 3


@TRANSPORTS
def test_asynchronous_calls_do_not_wait_for_connections(transports: str, tmp_path: Path) -> None:
    run_pair(
        asynchronous_calls_return,
        tmp_path,
        transports=transports,
        algorithm="all_reduce=recursive_doubling",
    )


def interrupted_after(seconds: float) -> subprocess.Popen[bytes]:
    """Interrupt this process from outside: nothing here needs to run for it."""
    script = f"import os, time; time.sleep({seconds}); os.kill({os.getpid()}, 2)"
    return subprocess.Popen([sys.executable, "-c", script])


@contextmanager
def interrupted_soon() -> Iterator[None]:
    begun = time.monotonic()
    with interrupted_after(0.5), pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - begun < SOON_S


def ctrl_c_ends_a_send(comm: pccl.Communicator) -> None:
    with beside_a_stopped_rank(comm) as is_waiting:
        if is_waiting:
            with interrupted_soon():
                comm.send(np.ones(3), 1)


def ctrl_c_ends_a_collective(comm: pccl.Communicator) -> None:
    with beside_a_stopped_rank(comm) as is_waiting:
        if is_waiting:
            with interrupted_soon():
                comm.all_reduce(np.ones(3))


@TRANSPORTS
@pytest.mark.parametrize("body", [ctrl_c_ends_a_send, ctrl_c_ends_a_collective])
def test_ctrl_c_ends_what_connects(
    body: Callable[..., Any], transports: str, tmp_path: Path
) -> None:
    run_pair(body, tmp_path, transports=transports, algorithm="all_reduce=recursive_doubling")


@pytest.mark.parametrize("rendezvous", ["tcp", "file"])
def test_ctrl_c_ends_waiting_for_a_store(rendezvous: str, tmp_path: Path) -> None:
    """Rank 0, which would make it, does not come."""
    where = f"tcp://127.0.0.1:{free_port()}" if rendezvous == "tcp" else f"file://{tmp_path}/store"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupted_soon():
        pccl.Communicator(rank=1, world_size=2, rendezvous=where, timeout=3 * SOON_S)
    signal.signal(signal.SIGINT, before)


class FolderStore:
    """A rendezvous store whose rank 1 is stopped when it has learned who the others are."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder, self.rank = folder, rank

    def path(self, key: str) -> Path:
        return self.folder / key.replace("/", "-")

    def set(self, key: str, value: bytes) -> None:
        draft = self.path(f"{key}.{self.rank}")
        draft.write_bytes(value)
        draft.rename(self.path(key))

    def get(self, key: str) -> bytes | None:
        if not self.path(key).exists():
            return None
        if self.rank == 1 and "/roster/" in key:
            self.set("stopped", str(os.getpid()).encode())
            os.kill(os.getpid(), signal.SIGSTOP)
        return self.path(key).read_bytes()

    def add(self, key: str, amount: int) -> int:
        raise NotImplementedError


INTERRUPT = """
import os, pathlib, sys, time
rank, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
while not (folder / "stopped").exists():
    time.sleep(0.01)
stopped = (folder / "stopped").read_text()
while " T " not in pathlib.Path(f"/proc/{stopped}/stat").read_text():
    time.sleep(0.01)
time.sleep(0.5)
os.kill(rank, 2)
"""


def _meet(rank: int, folder: Path, failures: Any) -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    script = [sys.executable, "-c", INTERRUPT, str(os.getpid()), str(folder)]
    interruption = subprocess.Popen(script) if rank == 0 else None
    begun = time.monotonic()
    try:
        with pytest.raises(pccl.PeerLostError if interruption is None else KeyboardInterrupt):
            pccl.Communicator(
                rank=rank, world_size=2, rendezvous=FolderStore(folder, rank), timeout=LIMIT_S
            )
        assert time.monotonic() - begun < LIMIT_S / 2
    except BaseException:
        failures.put(f"rank {rank}:\n{traceback.format_exc()}")
        raise
    finally:
        if interruption is not None:
            interruption.wait()
            os.kill(int((folder / "stopped").read_text()), signal.SIGCONT)


def test_ctrl_c_ends_waiting_for_ranks_that_open_their_memory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failures = context.SimpleQueue()
    ranks = [context.Process(target=_meet, args=(rank, tmp_path, failures)) for rank in range(2)]
    finish(ranks, failures)


class Array(np.ndarray):
    """An array that tells when it goes."""


def fresh() -> tuple[np.ndarray, weakref.ref[Any]]:
    array = np.zeros(1000).view(Array)
    return array, weakref.ref(array)


def alive(kept: list[weakref.ref[Any]]) -> int:
    gc.collect()
    return sum(each() is not None for each in kept)


MESSAGES = 200


def messages_let_arrays_go(comm: pccl.Communicator) -> None:
    """Nothing but messages: no collective comes along to clear up."""
    kept = []
    for i in range(MESSAGES):
        array, reference = fresh()
        kept.append(reference)
        if (comm.rank + i) % 2 == 0:
            comm.send(array, 1 - comm.rank)
        else:
            comm.recv(array, 1 - comm.rank)
        del array
        assert alive(kept) == 0


def asynchronous_messages_let_arrays_go(comm: pccl.Communicator) -> None:
    kept = []
    for i in range(MESSAGES):
        out, reference = fresh()
        kept.append(reference)
        into, reference = fresh()
        kept.append(reference)
        sent = comm.send(out, 1 - comm.rank, async_op=True)
        received = comm.recv(into, 1 - comm.rank, async_op=True)
        del out, into
        if i % 2 == 0:
            received.wait()
            sent.wait()
        else:
            while not (sent.is_done() and received.is_done()):
                time.sleep(0.001)
        assert alive(kept) == 0


def events_that_nobody_keeps_let_arrays_go(comm: pccl.Communicator) -> None:
    """Arrays of messages that nobody waits for go with the next call once these are done."""
    kept = []
    word = np.zeros(1)
    for _ in range(MESSAGES):
        array, reference = fresh()
        kept.append(reference)
        if comm.rank == 0:
            comm.send(array, 1, async_op=True)
        else:
            comm.recv(array, 0, async_op=True)
        del array
        comm.send(word, 1 - comm.rank, tag=1, async_op=True)
        comm.recv(word, 1 - comm.rank, tag=1)
    deadline = time.monotonic() + SOON_S
    while alive(kept) and time.monotonic() < deadline:
        comm.send(word, comm.rank, tag=2, async_op=True)
        comm.recv(word, comm.rank, tag=2)
    assert alive(kept) == 0


def collectives_let_arrays_go(comm: pccl.Communicator) -> None:
    kept = []
    for i in range(MESSAGES):
        array, reference = fresh()
        kept.append(reference)
        event = comm.all_reduce(array, async_op=i % 2 == 0)
        del array
        if event is not None:
            event.wait()
        assert alive(kept) == 0


def an_array_whose_end_calls_the_library(comm: pccl.Communicator) -> None:
    """Code of the user that runs as an array goes must not disturb the call that lets it go."""
    alone = pccl.Communicator()
    ended = []

    def use_again() -> None:
        x = np.full(7, 1.0)
        alone.all_reduce(x)
        ended.append(x.tolist() == [1.0] * 7)

    for _ in range(20):
        array, _ = fresh()
        weakref.finalize(array, use_again)
        comm.all_reduce(array, async_op=True)
        del array
        gc.collect()
        comm.barrier()  # after which the first is done
        x = np.arange(100.0)
        comm.all_reduce(x)
        assert x.tolist() == [2.0 * i for i in range(100)]
    comm.barrier()
    assert ended == [True] * len(ended)
    assert ended


@TRANSPORTS
@pytest.mark.parametrize(
    "body",
    [
        messages_let_arrays_go,
        asynchronous_messages_let_arrays_go,
        events_that_nobody_keeps_let_arrays_go,
        collectives_let_arrays_go,
    ],
)
def test_arrays_go_when_they_are_not_needed(
    body: Callable[..., Any], transports: str, tmp_path: Path
) -> None:
    run_pair(body, tmp_path, transports=transports)


def test_an_array_whose_end_calls_the_library(tmp_path: Path) -> None:
    run_pair(an_array_whose_end_calls_the_library, tmp_path)

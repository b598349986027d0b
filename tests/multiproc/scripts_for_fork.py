# SPDX-License-Identifier: Apache-2.0
"""A rank that forks in one of the ways users do; test_fork.py runs two of them.

    scripts_for_fork.py <function of this file> <ranks> <rendezvous> <transports>

Functions named ``torch_...`` have a process group of torch, the others a ``pccl.Communicator``.
Of several ranks, "01", each is forked from one process, which has loaded torch, as that takes long;
like any program, it ends with the interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import pccl

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.background import busy_threads, still_watched, watched
from support.launch import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_S = 120  # after which a child that hangs is ended by a signal
CHILDREN = 30

comm: pccl.Communicator  # of this rank, where the way needs one; made by run_numpy()


@contextlib.contextmanager
def forked() -> Iterator[bool]:
    """Fork, and give True in the child, which ends with the block; the parent awaits its end."""
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            yield True
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    yield False
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def refused(call: Callable[[], object]) -> None:
    try:
        call()
    except pccl.UnavailableError as error:
        assert "fork" in str(error), error  # noqa: PT017 (not under pytest)
    else:
        raise AssertionError("a child used the group of its parent")


def exit_in_a_child() -> None:
    """Let the interpreter end, and with it what is global."""
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def use(comm: pccl.Communicator) -> None:
    """All that makes connections and threads."""
    x = np.full(1000, comm.rank + 1.0)
    comm.all_reduce(x)
    assert (x == 3).all()
    comm.all_reduce(x, async_op=True).wait()
    assert (x == 6).all()
    peer = 1 - comm.rank
    inbox = np.empty(1000)
    sent = comm.send(x, peer, async_op=True)
    comm.recv(inbox, peer)
    sent.wait()
    assert (inbox == x).all()


def the_child_exits_normally(rank: int) -> None:
    if rank == 0:
        exit_in_a_child()


def the_child_drops_the_group(rank: int) -> None:
    global comm
    if rank != 0:
        return
    with forked() as is_child:
        if is_child:
            del comm
            gc.collect()


def the_child_ends_the_group(rank: int) -> None:
    if rank != 0:
        return
    with forked() as is_child:
        if is_child:
            comm.abort("it is over")
            comm.shutdown()


def the_child_replaces_the_group(rank: int) -> None:
    """What it drops leaves room for a group of its own."""
    global comm
    if rank != 0:
        return
    with forked() as is_child:
        if is_child:
            del comm
            gc.collect()
            own = pccl.Communicator()
            x = np.ones(3)
            own.all_reduce(x)
            assert (x == 1).all()


def the_child_of_the_child_exits(rank: int) -> None:
    if rank != 0:
        return
    with forked() as is_child:
        if is_child:
            with forked():
                pass


def the_child_uses_the_group(rank: int) -> None:
    x = np.ones(3)
    if rank != 0:
        comm.recv(x, 0, tag=6)
        comm.send(x, 0, tag=5)
        return
    waiting = comm.recv(np.empty(3), 1, tag=5, async_op=True)
    with forked() as is_child:
        if is_child:
            refused(lambda: comm.all_reduce(x))
            refused(lambda: comm.all_reduce(x, async_op=True))
            refused(lambda: comm.send(x, 1))
            refused(lambda: comm.recv(x, 1, async_op=True))
            refused(waiting.wait)
            refused(waiting.flush)
            refused(comm.barrier)
            refused(lambda: comm.monitored_barrier(1.0))
            refused(comm.health)
            refused(lambda: comm.shrink([1]))
            refused(lambda: comm.explain("all_reduce", 1024))
            refused(pccl.Communicator)
    comm.send(x, 1, tag=6)
    waiting.wait()


def children_come_while_a_thread_uses_the_group(rank: int) -> None:
    """Whatever that thread holds when a child comes, the child must not wait for it."""
    stop = threading.Event()

    def use_on() -> None:
        go_on = np.ones(5000)
        while go_on[0]:
            go_on[:] = not stop.is_set()
            comm.broadcast(go_on)

    thread = threading.Thread(target=use_on)
    thread.start()
    for _ in range(CHILDREN if rank == 0 else 0):
        with forked() as is_child:
            if is_child:
                refused(comm.barrier)
                refused(lambda: comm.recv(np.ones(3), 1, async_op=True))
                refused(comm.health)
                comm.shutdown()
    stop.set()
    thread.join()


def a_worker_is_started(rank: int) -> None:
    worker = multiprocessing.get_context("fork").Process(target=gc.collect)
    worker.start()
    worker.join()
    assert worker.exitcode == 0


def torch_use(rank: int) -> None:
    import torch
    import torch.distributed as dist

    x = torch.full((1000,), rank + 1.0)
    dist.all_reduce(x)
    assert (x == 3).all()
    dist.all_reduce(x, async_op=True).wait()
    assert (x == 6).all()
    inbox = torch.empty(1000)
    sent = dist.isend(x, 1 - rank)
    dist.recv(inbox, 1 - rank)
    sent.wait()
    assert (inbox == x).all()


def torch_child_exits_normally(rank: int) -> None:
    if rank == 0:
        exit_in_a_child()


def torch_child_destroys_the_group(rank: int) -> None:
    import torch.distributed as dist

    if rank != 0:
        return
    with forked() as is_child:
        if is_child:
            dist.destroy_process_group()
            gc.collect()


def torch_child_uses_the_group(rank: int) -> None:
    import torch
    import torch.distributed as dist

    x = torch.ones(3)
    if rank != 0:
        dist.recv(x, 0, tag=6)
        dist.send(x, 0, tag=5)
        return
    waiting = dist.irecv(torch.empty(3), 1, tag=5)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with forked() as is_child:
        if is_child:
            refused(lambda: dist.all_reduce(x))
            refused(lambda: dist.all_reduce(x, async_op=True).wait())
            refused(lambda: dist.isend(x, 1))
            refused(lambda: dist.recv(x, 1))
            refused(waiting.wait)
            refused(dist.barrier)
            refused(pccl.health)
            refused(lambda: pccl.shrink(ranks_to_exclude=[1]))
            assert "COMM_ERROR" in str(backend.get_error())
            backend.abort()
            backend.shutdown()
    dist.send(x, 1, tag=6)
    waiting.wait()


class Squares:
    """A data set."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        return index * index


def torch_loads_data(rank: int) -> None:
    """Workers are forked, and end, between steps of training."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    for _ in range(2):
        loader: Any = DataLoader(
            Squares(),  # type: ignore[arg-type]
            batch_size=16,
            num_workers=2,
            multiprocessing_context="fork",
        )
        seen = 0
        for batch in loader:
            x = torch.ones(100)
            dist.all_reduce(x)
            assert (x == 2).all()
            seen += int(batch.sum())
        assert seen == sum(index * index for index in range(64))


def a_child_lives_on(rank: int, rendezvous: str, transports: str) -> None:
    """Rank 1 leaves; what it closes is not kept open, and looked at, in rank 0 for its child."""
    group = pccl.Communicator(
        rank=rank, world_size=2, rendezvous=rendezvous, transports=transports, timeout=LIMIT_S
    )
    use(group)
    child = os.fork() if rank == 0 else -1
    if child == 0:
        signal.alarm(LIMIT_S)
        signal.pause()
    group.barrier()
    if rank == 1:
        return
    try:
        group.recv(np.empty(1), 1)
    except pccl.PeerLostError:
        time.sleep(0.5)  # so that its process has ended
        report(busy=busy_threads())
    finally:
        os.kill(child, signal.SIGKILL)


def a_rank_is_killed_whose_child_lives_on(rank: int, rendezvous: str, transports: str) -> None:
    group = pccl.Communicator(
        rank=rank, world_size=2, rendezvous=rendezvous, transports=transports, timeout=LIMIT_S
    )
    use(group)
    child = os.fork() if rank == 1 else -1
    if child == 0:
        signal.alarm(LIMIT_S + 10)
        signal.pause()
    doomed = np.array([os.getpid(), child])
    group.broadcast(doomed, root=1)
    if rank == 1:
        signal.pause()  # until rank 0 has the numbers
    begun = time.monotonic()
    os.kill(int(doomed[0]), signal.SIGKILL)
    try:
        group.recv(np.empty(1), 1)
    except pccl.PeerLostError as error:
        report(seconds=time.monotonic() - begun, blamed=error.rank)
    finally:
        os.kill(int(doomed[1]), signal.SIGKILL)


def report(**found: object) -> None:
    os.write(sys.stdout.fileno(), f"{json.dumps(found)}\n".encode())  # whole, beside other ranks


def run_torch(way: Callable[[int], None], rank: int, rendezvous: str) -> None:
    import torch.distributed as dist

    dist.init_process_group(
        "pccl",
        init_method=rendezvous,
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=LIMIT_S),
    )
    torch_use(rank)
    before = watched()
    way(rank)
    dist.barrier()
    report(watched=still_watched(before), busy=busy_threads())
    torch_use(rank)
    dist.destroy_process_group()


def run_numpy(way: Callable[[int], None], rank: int, rendezvous: str, transports: str) -> None:
    global comm
    comm = pccl.Communicator(
        rank=rank, world_size=2, rendezvous=rendezvous, transports=transports, timeout=LIMIT_S
    )
    use(comm)
    before = watched()
    way(rank)
    comm.barrier()
    report(watched=still_watched(before), busy=busy_threads())
    use(comm)
    comm.barrier()


def run_rank(name: str, rank: int, rendezvous: str, transports: str) -> None:
    way = globals()[name]
    if name.startswith("torch_"):
        run_torch(way, rank, rendezvous)
    elif name.endswith("lives_on"):
        way(rank, rendezvous, transports)
    else:
        run_numpy(way, rank, rendezvous, transports)


def fork_ranks(ranks: list[int]) -> int | None:
    """Give each process its rank, and the one that started them None, once they ended well."""
    import torch.distributed  # noqa: F401 (for the ranks)

    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"cannot fork ranks: {threads} threads run"
    started = {}
    for rank in ranks:
        process = os.fork()
        if process == 0:
            die_with_parent()
            return rank
        started[process] = rank
    for process, rank in started.items():
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert code == 0, f"rank {rank} ended with {code}"
    return None


def main() -> None:
    name, ranks, rendezvous, transports = sys.argv[1:]
    numbers = [int(rank) for rank in ranks]
    rank = fork_ranks(numbers) if len(numbers) > 1 else numbers[0]
    if rank is not None:
        run_rank(name, rank, rendezvous, transports)


if __name__ == "__main__":
    main()

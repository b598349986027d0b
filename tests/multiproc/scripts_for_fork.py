"""A rank that forks in one of the ways users do; test_fork.py runs two of them.

scripts_for_fork.py <function of this file> <rank> <rendezvous> <transports>
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import pccl

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.background import busy_threads, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_S = 30  # after which a child that hangs is ended by a signal


@contextlib.contextmanager
def forked() -> Iterator[bool]:
    """Fork, and give True in the child, which ends with the block; the parent awaits its end."""
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            yield True
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    yield False
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


def the_child_exits_normally() -> None:
    child = os.fork()
    if child == 0:
        sys.exit(0)  # the interpreter ends, and with it the global group
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def the_child_drops_the_group() -> None:
    global comm
    with forked() as is_child:
        if is_child:
            del comm
            gc.collect()


def the_child_ends_the_group() -> None:
    with forked() as is_child:
        if is_child:
            comm.abort("it is over")
            comm.shutdown()


def the_child_replaces_the_group() -> None:
    """What it drops leaves room for a group of its own."""
    global comm
    with forked() as is_child:
        if is_child:
            del comm
            gc.collect()
            own = pccl.Communicator()
            x = np.ones(3)
            own.all_reduce(x)
            assert (x == 1).all()


def the_child_of_the_child_exits() -> None:
    with forked() as is_child:
        if is_child:
            with forked():
                pass


def refused(call: Callable[[], object]) -> None:
    try:
        call()
    except pccl.UnavailableError as error:
        assert "fork" in str(error), error  # noqa: PT017 (not under pytest)
    else:
        raise AssertionError("a child used the group of its parent")


def the_child_uses_the_group() -> None:
    x = np.ones(3)
    waiting = comm.recv(np.empty(3), 1 - comm.rank, tag=5, async_op=True)
    with forked() as is_child:
        if is_child:
            refused(lambda: comm.all_reduce(x))
            refused(lambda: comm.all_reduce(x, async_op=True))
            refused(lambda: comm.send(x, 1 - comm.rank))
            refused(lambda: comm.recv(x, 1 - comm.rank, async_op=True))
            refused(waiting.wait)
            refused(waiting.flush)
            refused(comm.barrier)
            refused(lambda: comm.monitored_barrier(1.0))
            refused(comm.health)
            refused(lambda: comm.shrink([1 - comm.rank]))
            refused(lambda: comm.explain("all_reduce", 1024))
            refused(pccl.Communicator)
    comm.send(x, 1 - comm.rank, tag=6)  # the other now sends
    waiting.wait()


def main() -> None:
    global comm
    way, rank, rendezvous, transports = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    comm = pccl.Communicator(
        rank=rank, world_size=2, rendezvous=rendezvous, transports=transports, timeout=LIMIT_S
    )
    use(comm)
    before = watched()
    if rank == 0:
        globals()[way]()
    elif way == "the_child_uses_the_group":
        comm.recv(np.empty(3), 0, tag=6)
        comm.send(np.ones(3), 0, tag=5)
    comm.barrier()
    print(json.dumps({"watched": watched() == before, "busy": busy_threads()}), flush=True)
    use(comm)
    comm.barrier()
    print("done", flush=True)


if __name__ == "__main__":
    main()

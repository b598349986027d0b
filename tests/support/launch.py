# SPDX-License-Identifier: Apache-2.0
"""Run one function on several ranks, each a process of its own, and collect what they return.

    def check(rank: int, world_size: int) -> None:
        x = torch.ones(3) * rank
        dist.all_reduce(x)

    def test_sum():
        run_ranks(check, world_size=4)

Ranks are forked from a server process that has torch and pccl imported and has computed nothing,
so a rank starts in milliseconds and inherits no thread. A rank that fails or hangs ends the test:
the error shows every rank's traceback, and the Python stacks of those that were still running.

The functions of one test module are found by file and name; they must be at its top level.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.context import ForkServerContext

    import torch.distributed as dist

BACKEND = os.environ.get("PCCL_TEST_BACKEND", "pccl")
GRACE_S = 5.0  # how long ranks may go on after one of them failed
EXIT_S = 60.0  # how long the process of a rank that has returned may take to end
STACK_DUMP_S = 1.0  # how long the rest of a dump may take that has begun
LONGEST_DUMP_S = 20.0

PRELOADED = [
    "pccl._core",
    "pccl._torch",
    "pccl.capsule",
    "pytest",
    "torch",
    "torch.distributed",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
    "torch.optim",
    "torch.testing",
]


def not_on_gloo(reason: str) -> Any:
    """Return a mark for what Gloo cannot do, so that the tests can be tried on Gloo."""
    import pytest

    return pytest.mark.skipif(BACKEND == "gloo", reason=f"Gloo {reason}")


class RankError(AssertionError):
    """One or more ranks failed; the message has a section for each."""


@dataclass(frozen=True)
class _Job:
    """What a rank needs to know; travels to it pickled."""

    path: str
    function: str
    arguments: tuple[Any, ...]
    rank: int
    world_size: int
    backend: str | None
    store_host: str
    store_port: int
    timeout_s: float
    environment: Mapping[str, str]
    stack_dump: str


@dataclass(frozen=True)
class Machines:
    """Two machines that make the same call of ``run_ranks``, each for one of its two ranks."""

    rank: int  # of this machine
    first: str  # address of the machine of rank 0
    port: int  # of the store there; another one in each call
    other_stays: bool = True  # False: the machine of rank 1 ends during the call


@dataclass
class _Rank:
    """The parent's view of one rank."""

    process: Any
    pipe: multiprocessing.connection.Connection
    stack_dump: Path
    reply: tuple[bool, Any] | None = None

    @property
    def succeeded(self) -> bool:
        return self.reply is not None and self.reply[0]

    def take_reply(self) -> None:
        """Read what the rank sent; one that died without a word leaves None."""
        try:
            self.reply = pickle.loads(self.pipe.recv_bytes())
        except EOFError:
            self.process.join(STACK_DUMP_S)

    def describe_failure(self) -> str:
        if self.reply is None:
            return f"ended with exit code {self.process.exitcode} and no result" + self.stacks()
        return str(self.reply[1])

    def stacks(self) -> str:
        text = self.stack_dump.read_text() if self.stack_dump.exists() else ""
        return f"\n{text}" if text else ""


def run_ranks(
    function: Callable[..., Any],
    world_size: int,
    *,
    arguments: Sequence[Any] = (),
    backend: str | None = BACKEND,
    timeout_s: float = 60.0,
    exit_s: float = EXIT_S,
    environment: Mapping[str, str] | None = None,
    machines: Machines | None = None,
) -> list[Any]:
    """Call ``function(rank, world_size, *arguments)`` on every rank and return the results by rank.

    The default process group exists during the call, on ``backend``; with ``backend=None`` the
    function gets no group, and ``new_store`` gives it the store to make one. ``timeout_s`` limits
    the group's operations and, with some seconds more, the whole call; ``exit_s`` the end of a
    process after that. Results are pickled. With ``machines``, this machine runs one of the ranks,
    and gets the result of that one.

    Raises
    ------
    RankError
        If a rank raised, died or did not return in time.
    """
    import torch.distributed as dist

    is_first = machines is None or machines.rank == 0
    store = dist.TCPStore(
        machines.first if machines else "127.0.0.1",
        machines.port if machines else 0,
        is_master=is_first,
        wait_for_workers=False,
        timeout=timedelta(seconds=timeout_s),
    )
    source = Path(sys.modules[function.__module__].__file__ or "")
    with tempfile.TemporaryDirectory() as scratch:
        jobs = [
            _Job(
                path=str(source),
                function=function.__qualname__,
                arguments=tuple(arguments),
                rank=rank,
                world_size=world_size,
                backend=backend,
                store_host=store.host,
                store_port=store.port,
                timeout_s=timeout_s,
                environment=dict(environment or {}),
                stack_dump=f"{scratch}/{rank}",
            )
            for rank in ([machines.rank] if machines else range(world_size))
        ]
        ranks = [_start(job) for job in jobs]
        try:
            _await_replies(ranks, timeout_s + GRACE_S)
        finally:
            _stop(ranks, exit_s)
            if machines and not is_first:
                store.set("over", "")
            elif machines and machines.other_stays:
                store.wait(["over"])
        return _results(ranks)


def die_with_parent() -> None:
    """Inside a process: end when the one that started it does, however it ends."""
    prctl_set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(prctl_set_parent_death_signal, signal.SIGKILL)


def new_store() -> dist.Store:
    """Inside a rank: a connection of its own to the store of this ``run_ranks`` call."""
    import torch.distributed as dist

    assert _current_job is not None, "only ranks started by run_ranks have a store"
    return dist.TCPStore(_current_job.store_host, _current_job.store_port, is_master=False)


def warm_processes() -> ForkServerContext:
    """Return what starts processes of a test's own in milliseconds, from the server of the ranks.

    What they read from the environment they must be given: the server has that of its start.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _start(job: _Job) -> _Rank:
    context = warm_processes()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_rank, args=(pickle.dumps(job), theirs))
    process.start()
    theirs.close()
    return _Rank(process, ours, Path(job.stack_dump))


def _await_replies(ranks: list[_Rank], limit_s: float) -> None:
    """Wait until all ranks have answered, or one has failed and the others had their grace."""
    deadline = time.monotonic() + limit_s
    waiting = list(ranks)
    while waiting and time.monotonic() < deadline:
        remaining = max(0.0, deadline - time.monotonic())
        ready = multiprocessing.connection.wait([rank.pipe for rank in waiting], remaining)
        for rank in [rank for rank in waiting if rank.pipe in ready]:
            waiting.remove(rank)
            rank.take_reply()
            if not rank.succeeded:
                deadline = min(deadline, time.monotonic() + GRACE_S)
    for rank in waiting:
        _dump_stacks(rank)


def _dump_stacks(rank: _Rank) -> None:
    if not rank.process.is_alive():
        return
    try:
        os.kill(rank.process.pid, signal.SIGUSR1)
    except ProcessLookupError:  # it has just ended
        return
    deadline = time.monotonic() + LONGEST_DUMP_S
    while not rank.stacks() and rank.process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    rank.process.join(STACK_DUMP_S)
    rank.reply = (False, f"did not return in time; its stacks:{rank.stacks()}")


def _stop(ranks: list[_Rank], exit_s: float) -> None:
    """End every rank: those that succeeded by themselves, the others by a signal."""
    for rank in ranks:
        succeeded = rank.succeeded
        rank.process.join(exit_s if succeeded else 0)
        if rank.process.is_alive():
            if succeeded:
                _dump_stacks(rank)
            rank.process.kill()
            rank.process.join()
        elif succeeded and rank.process.exitcode != 0:
            rank.reply = (False, f"returned, then ended with exit code {rank.process.exitcode}")


def _results(ranks: list[_Rank]) -> list[Any]:
    failed = [
        f"--- rank {number}: {rank.describe_failure()}"
        for number, rank in enumerate(ranks)
        if not rank.succeeded
    ]
    if failed:
        raise RankError("\n".join([f"{len(failed)} of {len(ranks)} ranks failed", *failed]))
    return [rank.reply[1] for rank in ranks if rank.reply is not None]


# What follows runs in the rank.

_current_job: _Job | None = None


def _run_rank(pickled_job: bytes, pipe: multiprocessing.connection.Connection) -> None:
    global _current_job
    die_with_parent()
    gc.freeze()  # else a collection walks, and thereby copies, all that the server has imported
    job: _Job = pickle.loads(pickled_job)
    _current_job = job
    stack_dump = Path(job.stack_dump).open("w")  # noqa: SIM115 (open until the process ends)
    faulthandler.enable(stack_dump)
    if "PCCL_FLIGHT_DIR" not in job.environment:  # which wants the signal for itself
        faulthandler.register(signal.SIGUSR1, stack_dump)
    try:
        reply = (True, _call(job))
    except BaseException:
        reply = (False, traceback.format_exc())
    pipe.send_bytes(pickle.dumps(reply))
    pipe.close()


def _call(job: _Job) -> Any:
    import torch
    import torch.distributed as dist

    os.environ.update(job.environment)
    dist.set_debug_level_from_env()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    function = getattr(_load(job.path), job.function)
    if job.backend is None:
        return function(job.rank, job.world_size, *job.arguments)
    dist.init_process_group(
        job.backend,
        store=new_store(),
        rank=job.rank,
        world_size=job.world_size,
        timeout=timedelta(seconds=job.timeout_s),
    )
    result = function(job.rank, job.world_size, *job.arguments)
    if dist.is_initialized():
        dist.destroy_process_group()
    return result


def _load(path: str) -> Any:
    """Import a test module by its file: pytest gives modules names that only it can resolve."""
    name = Path(path).stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]

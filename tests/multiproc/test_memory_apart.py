# SPDX-License-Identifier: Apache-2.0
"""Ranks of one host that cannot share memory: they use TCP, and a line of the log says why."""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
import traceback
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from faults.network import enter, join, separate_namespaces, why_no_namespaces
from pccl import p2p
from support.launch import warm_processes
from support.ports import free_port
from support.refused_calls import refuse
from support.two_hosts import bind_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")


def become_nobody() -> None:
    """Change the user once all modules that are needed later are loaded."""
    pccl.Communicator().barrier()
    os.setuid(NOBODY)


def allow_small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def forbid_memory_files() -> None:
    """Let the kernel refuse memfd_create, as filters of containers may."""
    refuse("memfd_create")
    with pytest.raises(PermissionError):
        os.memfd_create("pccl-test")


def _reduce(comm: pccl.Communicator) -> str:
    for count in (10, 300_000):
        x = np.full(count, comm.rank + 1, np.float32)
        comm.all_reduce(x)
        assert (x == sum(range(1, comm.world_size + 1))).all(), x
    half = comm.split(comm.rank % 2)
    assert half is not None
    half.barrier()
    shown = str(pccl.explain("all_reduce", 1 << 20, comm).chosen.algorithm)
    comm.barrier()
    return shown


def _be_rank(
    where: dict[str, Any],
    variables: dict[str, str],
    prepare: Callable[[], None] | None,
    to: Connection,
) -> None:
    # What the native code writes, in order to look at it.
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)
        os.environ.update(variables)
        try:
            if prepare is not None:
                prepare()
            outcome = ("done", _reduce(pccl.Communicator(**where, timeout=40)))
        except Exception as error:
            outcome = ("failed", "".join(traceback.format_exception_only(error)))
        errors.seek(0)
        to.send((*outcome, errors.read().decode(errors="replace")))


def _run(
    prepare: list[Callable[[], None] | None],
    store: str | None = None,
    variables: dict[str, str] | None = None,
) -> tuple[list[str], str]:
    """Run a rank for each of ``prepare``; return the algorithms, which are one, and all logs."""
    context = warm_processes()
    store = store or f"tcp://127.0.0.1:{free_port()}"
    ends = []
    with contextlib.ExitStack() as stack:
        for rank, before in enumerate(prepare):
            here, there = context.Pipe(duplex=False)
            where = {"rank": rank, "world_size": len(prepare), "rendezvous": store}
            arguments = (where, variables or {}, before, there)
            process = context.Process(target=_be_rank, args=arguments, daemon=True)
            process.start()
            stack.callback(process.kill)
            there.close()
            ends.append(here)
        outcomes = []
        for end in ends:
            assert end.poll(90), "a rank neither ended nor failed in time"
            outcomes.append(end.recv())
    logs = "".join(log for _, _, log in outcomes)
    for rank, (verdict, text, _) in enumerate(outcomes):
        assert verdict == "done", f"rank {rank}: {text}\n{logs}"
    return [text for _, text, _ in outcomes], logs


def _check_alike(algorithms: list[str]) -> None:
    assert len(set(algorithms)) == 1, "all ranks choose the same"
    assert not algorithms[0].startswith("shm_"), "it does without shared memory"


@as_root
@pytest.mark.parametrize("nobodies", [[1], [0], [2, 3]])
def test_ranks_of_two_users_use_tcp(nobodies: list[int]) -> None:
    algorithms, logs = _run(
        [become_nobody if rank in nobodies else None for rank in range(max(nobodies) + 2)]
    )
    _check_alike(algorithms)
    lines = [line for line in logs.splitlines() if "share no memory" in line]
    assert len(lines) == 1, logs
    assert "runs as user" in lines[0]
    assert "TCP" in lines[0]


@as_root
def test_users_that_may_use_shared_memory_alone_get_the_reason() -> None:
    with pytest.raises(AssertionError, match=f"runs as user {NOBODY}, this process as user 0"):
        _run([None, become_nobody], variables={"PCCL_TRANSPORTS": "shm"})


@pytest.mark.parametrize("limited", [[0, 1], [1], [0]])
def test_ranks_that_may_write_small_files_alone_use_tcp(limited: list[int]) -> None:
    algorithms, logs = _run([allow_small_files if r in limited else None for r in range(2)])
    _check_alike(algorithms)
    lines = [line for line in logs.splitlines() if "no transport shm" in line]
    assert len(lines) == len(limited), logs
    assert all("ulimit -f" in line and "1048576" in line for line in lines), logs


def test_a_limit_is_named_where_nothing_but_shared_memory_is_allowed() -> None:
    with pytest.raises(AssertionError, match="ulimit -f"):
        _run([allow_small_files] * 2, variables={"PCCL_TRANSPORTS": "shm"})


@pytest.mark.parametrize("limited", [[0, 1], [1]])
def test_ranks_that_may_make_no_memory_files_use_tcp(limited: list[int]) -> None:
    algorithms, logs = _run([forbid_memory_files if r in limited else None for r in range(2)])
    _check_alike(algorithms)
    assert "no transport shm" in logs
    assert "memory file" in logs


class _Twin:
    """Enter a host that looks like another one to all that tells hosts apart; can be pickled."""

    def __init__(self, namespace: str, proc: str) -> None:
        self.namespace, self.proc = namespace, proc

    def __call__(self) -> None:
        enter(self.namespace)
        bind_over(self.proc, "/proc")


@pytest.mark.skipif(why_no_namespaces() is not None, reason=str(why_no_namespaces()))
@pytest.mark.parametrize("hosts", [[0, 1], [0, 0, 1, 1], [1, 0, 0]])
def test_another_machine_with_the_same_identity_is_reached_over_tcp(
    tmp_path: Path, hosts: list[int]
) -> None:
    """Virtual machines that were restored from one snapshot have one boot id."""
    proc = tmp_path / "proc"
    for name, text in (("self/ns/net", ""), ("sys/kernel/random/boot_id", str(uuid.uuid4()))):
        (proc / name).parent.mkdir(parents=True)
        (proc / name).write_text(text)
    with separate_namespaces() as names:
        join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))
        algorithms, logs = _run(
            [_Twin(names[host], str(proc)) for host in hosts], f"file://{tmp_path}/store"
        )
    _check_alike(algorithms)
    assert "share no memory, and use TCP" in logs, logs


def _serve(prepare: Callable[[], None] | None, pipe: Connection) -> None:
    if prepare is not None:
        prepare()
    with p2p.Session("server") as session:
        cells = np.arange(100_000, dtype=np.float64)
        memory = session.register(cells)
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        pipe.recv()


@as_root
def test_sessions_of_two_users_use_tcp() -> None:
    context = warm_processes()
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(_nobody_with_session, there), daemon=True)
    process.start()
    try:
        assert here.poll(60)
        info, descriptor = here.recv()
        with p2p.Session("client") as session:
            session.load(info)
            session.connect("server", timeout=30)
            copy = np.zeros(100_000)
            local = session.register(copy)
            session.read(local, session.import_memory("server", descriptor)).wait(timeout=30)
            assert (copy == np.arange(100_000)).all()
        here.send("end")
        process.join(30)
        assert process.exitcode == 0
    finally:
        process.kill()


def _nobody_with_session() -> None:
    with p2p.Session("first"):
        pass
    os.setuid(NOBODY)

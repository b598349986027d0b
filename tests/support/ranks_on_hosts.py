# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts: network namespaces, each a host of its own to PCCL."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import pccl
from faults.network import enter, joined_namespaces, limit_rate
from support.launch import warm_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path


def _be_rank(
    work: Callable[..., object],
    where: dict[str, Any],
    variables: dict[str, str],
    namespace: str,
    to: Connection,
    log: Path | None = None,
) -> None:
    os.environ.update(variables)
    if log is not None:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    enter(namespace)
    try:
        comm = pccl.Communicator(**where, timeout=60)
        to.send(work(comm))
    except Exception as error:
        to.send(str(error))
        raise
    comm.barrier()


def run_on_hosts(
    work: Callable[..., object],
    hosts: Sequence[int],
    folder: Path,
    mbit: int | None = None,
    **variables: str,
) -> list[Any]:
    """Run ``work(communicator)`` on a rank for each of ``hosts``, 0 or 1; return what each says.

    A rank that raises says the text of its error. ``folder`` is empty, ``mbit`` what either host
    can send a second, ``variables`` are of the ranks' environment.
    """
    with joined_namespaces() as names:
        for name in names if mbit is not None else ():
            limit_rate(name, mbit or 0)
        return run_in_namespaces(work, [names[host] for host in hosts], folder, **variables)


def run_in_namespaces(
    work: Callable[..., object],
    namespaces: Sequence[str],
    folder: Path,
    meanwhile: Callable[[], None] | None = None,
    **variables: str,
) -> list[Any]:
    """Run ``work(communicator)`` on a rank in each namespace; return what each says.

    ``meanwhile`` is called here once all ranks have started. Rank N logs to ``logN`` in ``folder``.
    """
    context = warm_processes()
    ends = []
    with contextlib.ExitStack() as stack:
        for rank, namespace in enumerate(namespaces):
            here, there = context.Pipe(duplex=False)
            where = {
                "rank": rank,
                "world_size": len(namespaces),
                "rendezvous": f"file://{folder}/store",
            }
            process = context.Process(
                target=_be_rank,
                args=(work, where, variables, namespace, there, folder / f"log{rank}"),
                daemon=True,
            )
            process.start()
            stack.callback(process.kill)
            stack.callback(process.join, 30)
            there.close()
            ends.append(here)
        if meanwhile is not None:
            meanwhile()
        return [end.recv() for end in ends]

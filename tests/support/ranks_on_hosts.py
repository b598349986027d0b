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
) -> None:
    os.environ.update(variables)
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
    context = warm_processes()
    ends = []
    with joined_namespaces() as names, contextlib.ExitStack() as stack:
        for name in names if mbit is not None else ():
            limit_rate(name, mbit or 0)
        for rank, host in enumerate(hosts):
            here, there = context.Pipe(duplex=False)
            where = {
                "rank": rank,
                "world_size": len(hosts),
                "rendezvous": f"file://{folder}/store",
            }
            process = context.Process(
                target=_be_rank, args=(work, where, variables, names[host], there), daemon=True
            )
            process.start()
            stack.callback(process.kill)
            stack.callback(process.join, 30)
            there.close()
            ends.append(here)
        return [end.recv() for end in ends]

"""Ranks on two hosts: network namespaces, each a host of its own to PCCL."""

from __future__ import annotations

import contextlib
import multiprocessing
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from faults.network import enter, joined_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def _be_rank(
    work: Callable[..., object], where: dict[str, Any], namespace: str, to: Connection
) -> None:
    enter(namespace)
    try:
        comm = pccl.Communicator(**where, timeout=60)
        to.send(work(comm))
    except Exception as error:
        to.send(str(error))
        raise
    comm.barrier()


def run_on_hosts(
    work: Callable[..., object], hosts: Sequence[int], folder: Path, **variables: str
) -> list[Any]:
    """Run ``work(communicator)`` on a rank for each of ``hosts``, 0 or 1; return what each says.

    A rank that raises says the text of its error. ``folder`` is empty, ``variables`` are of the
    ranks' environment.
    """
    context = multiprocessing.get_context("spawn")
    ends = []
    with (
        joined_namespaces() as names,
        _environment(variables),
        contextlib.ExitStack() as stack,
    ):
        for rank, host in enumerate(hosts):
            here, there = context.Pipe(duplex=False)
            where = {
                "rank": rank,
                "world_size": len(hosts),
                "rendezvous": f"file://{folder}/store",
            }
            process = context.Process(
                target=_be_rank, args=(work, where, names[host], there), daemon=True
            )
            process.start()
            stack.callback(process.kill)
            stack.callback(process.join, 30)
            there.close()
            ends.append(here)
        return [end.recv() for end in ends]

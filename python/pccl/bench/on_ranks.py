# SPDX-License-Identifier: Apache-2.0
"""Execution of the cases of a benchmark on newly started ranks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol, TypeVar

from pccl._internal.local_ranks import run_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core import Communicator
    from pccl.bench.cases import Case

__all__ = ["Job", "on_ranks"]

Found = TypeVar("Found")


class Job(Protocol):
    """Interface of a benchmark's parameters."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def timeout(self) -> float:
        """Maximum seconds of one call, or of the start of all ranks."""

    def cases(self) -> Iterator[Case]:
        """Yield the cases in the order of measurement."""


def on_ranks(
    job: Job, name: str, measure: Callable[[Communicator, Case], Found], *, transports: str = ""
) -> Iterator[Found]:
    """Yield the result of ``measure`` on rank 0 for each case of a job.

    ``measure`` must be picklable. The ranks form a group with the given name over ``transports``
    (empty: the value of PCCL_TRANSPORTS), and end with the iteration. Exceptions of a rank are
    raised here.
    """
    work = functools.partial(_measure_all, job, (name, transports), measure)
    yield from run_ranks(work, job.ranks)


def _measure_all(
    job: Job,
    group: tuple[str, str],
    measure: Callable[[Communicator, Case], Found],
    rank: int,
    rendezvous: str,
    send: Callable[[object], None],
) -> None:
    from pccl._core import Communicator  # not at the top: `pccl --help` needs no extension module

    name, transports = group
    comm = Communicator(
        rank=rank,
        world_size=job.ranks,
        rendezvous=rendezvous,
        timeout=job.timeout,
        name=name,
        transports=transports,
    )
    for case in job.cases():
        found = measure(comm, case)
        if rank == 0:
            send(found)
    comm.barrier()

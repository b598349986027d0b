# SPDX-License-Identifier: Apache-2.0
"""The cases of a benchmark, one after the other on ranks that are started for them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol, TypeVar

from pccl.local_ranks import run_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core import Communicator
    from pccl.bench.cases import Case

__all__ = ["Job", "on_ranks"]

Found = TypeVar("Found")


class Job(Protocol):
    """What is measured."""

    @property
    def ranks(self) -> int:
        """How many there are."""

    @property
    def timeout(self) -> float:
        """Seconds that one call, or the start of all ranks, may take."""

    def cases(self) -> Iterator[Case]:
        """Give them in the order in which they are measured."""


def on_ranks(
    job: Job, name: str, measure: Callable[[Communicator, Case], Found], *, transports: str = ""
) -> Iterator[Found]:
    """Give what ``measure``, which must be picklable, finds on rank 0 for each case of a job.

    The ranks, of a group of that name over ``transports`` (empty: as PCCL_TRANSPORTS says), end
    with the iteration. Raises what a rank raised.
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
    from pccl._core import Communicator  # not above: `pccl --help` needs no extension module

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

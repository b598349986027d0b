# SPDX-License-Identifier: Apache-2.0
"""Detection of Open MPI's mpiexec by its variables, where its PMIx server cannot be used."""

from __future__ import annotations

import os

from pccl.launchers import variables
from pccl.launchers.launcher import Launcher, Nowhere
from pccl.launchers.same_host import SameHostExchange

__all__ = ["find"]

_ADVICE = (
    "install libpmix (Debian: libpmix2) or name its folder in LD_LIBRARY_PATH, or set MASTER_ADDR "
    "and MASTER_PORT, the address and a free port of rank 0's host (mpiexec -x)"
)


def find(notes: list[str]) -> Launcher | None:
    """Return Open MPI's mpiexec, or None."""
    del notes
    place = variables.OPEN_MPI.place()
    if place is None:
        return None
    rank, size = place
    return Launcher(
        name=variables.OPEN_MPI.launcher,
        rank=rank,
        size=size,
        meeting=_meeting(rank, size),
        local_rank=variables.number("OMPI_COMM_WORLD_LOCAL_RANK"),
        local_size=variables.number("OMPI_COMM_WORLD_LOCAL_SIZE"),
    )


def _meeting(rank: int, size: int) -> SameHostExchange | Nowhere | str:
    url = variables.master_url()
    if url is not None:
        return url
    job = os.environ.get("PMIX_NAMESPACE")
    if job and variables.number("OMPI_COMM_WORLD_LOCAL_SIZE") == size:
        return SameHostExchange(f"pmix-{job}", rank, size)
    return Nowhere(_ADVICE)

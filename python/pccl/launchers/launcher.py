# SPDX-License-Identifier: Apache-2.0
"""A launcher as a value: the place of this process, and how the ranks of its job meet."""

from __future__ import annotations

import dataclasses
import typing

__all__ = ["Exchange", "InEnvironment", "Launcher", "Nowhere"]


class Exchange(typing.Protocol):
    """Way on which rank 0 passes one text to all ranks of the job."""

    def share(self, text: str | None, deadline: float) -> str:
        """Return the text of rank 0; every rank of the job calls this function.

        Parameters
        ----------
        text
            Text of rank 0: at most 1,000 characters of ASCII, without spaces, ``;`` and ``=``. None
            on other ranks.
        deadline
            Time of ``time.monotonic()`` at which the call ends with ``pccl.TimeoutError``.
        """


@dataclasses.dataclass(frozen=True)
class InEnvironment:
    """Meeting at MASTER_ADDR and MASTER_PORT, or at the store of torchrun's agent: ``env://``."""


@dataclasses.dataclass(frozen=True)
class Nowhere:
    """Meeting of a launcher that has no store, and for which no address is set.

    Attributes
    ----------
    advice
        What to type instead: ``"start it with srun --mpi=pmi2"``.
    """

    advice: str


@dataclasses.dataclass(frozen=True)
class Launcher:
    """Launcher of a job, and the place of this process in it.

    Attributes
    ----------
    name
        The launcher and the way to its store, for example ``"srun, PMI-2 (PMI_FD)"``.
    rank
        The rank of this process, 0 <= rank < size.
    size
        The number of ranks.
    local_rank
        The number of this process among the ranks of its host, or None where it is unknown.
    local_size
        The number of ranks of this host, or None where it is unknown.
    meeting
        The way on which the ranks meet: an exchange, the URL of a store, or one of the other types.
    """

    name: str
    rank: int
    size: int
    meeting: Exchange | InEnvironment | Nowhere | str
    local_rank: int | None = None
    local_size: int | None = None

    def __str__(self) -> str:
        """Return, for example, ``"srun, PMI-2 (PMI_FD): rank 1 of 4, local rank 1 of 2"``."""
        local = ""
        if self.local_rank is not None:
            of_size = "" if self.local_size is None else f" of {self.local_size}"
            local = f", local rank {self.local_rank}{of_size}"
        return f"{self.name}: rank {self.rank} of {self.size}{local}"

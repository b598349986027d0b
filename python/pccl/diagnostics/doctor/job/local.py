# SPDX-License-Identifier: Apache-2.0
"""Speed of the ranks of one host, by PCCL's shared memory."""

from __future__ import annotations

import dataclasses
import typing

from pccl._core import Communicator
from pccl.diagnostics.doctor.job import speed
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.job.exchange import Exchange

__all__ = ["measure"]

GROUP_S = 20.0


def measure(
    exchange: Exchange, ranks: list[int], rank: int, *, restricted: bool
) -> dict[str, typing.Any] | None:
    """Measure a group of all ranks of a host; all of them call this.

    Parameters
    ----------
    exchange
        Exchange of the host.
    ranks
        Ranks of the host.
    rank
        This rank.
    restricted
        True: ``PCCL_TRANSPORTS`` names the transports of the job. False: the group requires
        shared memory.

    Returns
    -------
    dict or None
        ``"speed"`` or ``"failure"``; None for a rank that is alone on its host.
    """
    if len(ranks) < 2:
        return None
    try:
        comm = Communicator(
            rank=ranks.index(rank),
            world_size=len(ranks),
            rendezvous=exchange,
            timeout=GROUP_S,
            name="doctor-host",
            transports="" if restricted else "shm",
        )
        try:
            return {"speed": dataclasses.asdict(speed.measure(comm, 0))}
        finally:
            comm.shutdown()
    except Error as error:
        return {"failure": " ".join(str(error).split())}

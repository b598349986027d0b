# SPDX-License-Identifier: Apache-2.0
"""The group of all ranks, as the job would form it."""

from __future__ import annotations

import typing

from pccl._core import Communicator
from pccl.diagnostics.doctor.finding import Finding, error
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.job.meeting import Meeting

__all__ = ["LIMIT_S", "form"]

LIMIT_S = 30.0


def form(meeting: Meeting) -> list[Finding]:
    """Form the group; all ranks call this. Return the finding of a failure."""
    try:
        comm = Communicator(
            rank=meeting.rank,
            world_size=meeting.size,
            rendezvous=meeting.exchange.part("group"),
            timeout=LIMIT_S,
            name="doctor",
        )
        try:
            comm.barrier()
        finally:
            comm.shutdown()
    except Error as failure:
        text = " ".join(str(failure).split())
        return [
            error(
                "job.group",
                f"a group of all {meeting.size} ranks cannot be formed: {text}",
                "run `pccl doctor` again with PCCL_LOG_LEVEL=info, which shows each connection",
            ).at("job")
        ]
    return []

# SPDX-License-Identifier: Apache-2.0
"""Detection of a step of Slurm without PMI: ``srun`` with ``--mpi=none``.

A batch script has SLURM_PROCID and SLURM_NTASKS, too, and the shell of ``salloc`` the latter, but
no variable of a step: each of them is one process, whatever the number of tasks of the job.
"""

from __future__ import annotations

import os
import re

from pccl.launchers import variables
from pccl.launchers.launcher import Launcher, Nowhere
from pccl.launchers.same_host import SameHostExchange

__all__ = ["find"]

_ADVICE = (
    "start it with srun --mpi=pmi2 or --mpi=pmix, or set MASTER_ADDR and MASTER_PORT, the address "
    "and a free port of the first host"
)


def find(notes: list[str]) -> Launcher | None:
    """Return the step of Slurm that contains this process; None outside of steps."""
    place = variables.SLURM.place()
    if place is None:
        if os.environ.get("SLURM_JOB_ID"):
            notes.append("SLURM_JOB_ID is set without a step: this is no process of srun")
        return None
    rank, size = place
    step = f"{os.environ.get('SLURM_JOB_ID')}.{os.environ.get('SLURM_STEP_ID')}"
    return Launcher(
        name=f"srun (step {step})",
        rank=rank,
        size=size,
        meeting=_meeting(step, rank, size),
        local_rank=variables.number("SLURM_LOCALID"),
        local_size=_local_size(),
    )


def _meeting(step: str, rank: int, size: int) -> SameHostExchange | Nowhere | str:
    url = variables.master_url()
    if url is not None:
        return url
    if variables.number("SLURM_STEP_NUM_NODES") == 1:
        return SameHostExchange(f"slurm-{os.environ.get('SLURM_CLUSTER_NAME')}-{step}", rank, size)
    return Nowhere(_ADVICE)


def _local_size() -> int | None:
    """Return the number of tasks on this node, from ``2(x3),1``."""
    counts: list[int] = []
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?", part)
        if match is None:
            return None
        counts += [int(match[1])] * int(match[2] or 1)
    node = variables.number("SLURM_NODEID")
    return counts[node] if node is not None and node < len(counts) else None

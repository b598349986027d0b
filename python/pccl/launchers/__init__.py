# SPDX-License-Identifier: Apache-2.0
"""Launchers of jobs: who started this process, as which rank, and where the ranks meet.

``rendezvous="auto"`` uses this package. It takes the first of these that it finds: RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT; the PMI-1 or PMI-2 server of MPICH, Intel MPI, Flux or
srun; the PMIx server of Open MPI or srun; Open MPI's variables; a step of Slurm; Kubernetes.
"""

from pccl.launchers.detection import Detection, detect
from pccl.launchers.launcher import Exchange, InEnvironment, Launcher, Nowhere

__all__ = ["Detection", "Exchange", "InEnvironment", "Launcher", "Nowhere", "detect"]


def __dir__() -> list[str]:
    return sorted(__all__)

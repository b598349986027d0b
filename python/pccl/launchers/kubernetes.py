# SPDX-License-Identifier: Apache-2.0
"""Detection of pods: Kubeflow's Trainer, and indexed Jobs, also those of a JobSet.

Kubernetes has no store for a job. A pod of an indexed Job has a stable host name, though, and the
template of the pods can name a port.
"""

from __future__ import annotations

import os
import socket

from pccl.launchers import variables
from pccl.launchers.launcher import Launcher, Nowhere

__all__ = ["find"]

_ADVICE = (
    "set MASTER_PORT to a port that all pods of the job leave free, and MASTER_ADDR to the host "
    "name of index 0 (JobSet: JOBSET-JOB-0-0.JOBSET), in the template of the pods"
)


def find(notes: list[str]) -> Launcher | None:
    """Return the operator that started this pod, or None."""
    return _trainer() or _indexed_job(notes)


def _trainer() -> Launcher | None:
    """Return Kubeflow's Trainer, which sets variables of torchrun and counts pods."""
    rank, size = variables.number("PET_NODE_RANK"), variables.number("PET_NNODES")
    if rank is None or size is None or rank >= size:
        return None
    return Launcher("Kubeflow Trainer (PET_*)", rank, size, _meeting_of_trainer())


def _meeting_of_trainer() -> Nowhere | str:
    if variables.number("PET_NPROC_PER_NODE") != 1:
        return Nowhere("start the script with torchrun, because PET_NPROC_PER_NODE is not 1")
    address, port = os.environ.get("PET_MASTER_ADDR"), variables.number("PET_MASTER_PORT")
    return variables.url_of(address, port) if address and port else Nowhere(_ADVICE)


def _indexed_job(notes: list[str]) -> Launcher | None:
    """Return the indexed Job of this pod, if its template counts the ranks in WORLD_SIZE."""
    rank, size = variables.number("JOB_COMPLETION_INDEX"), variables.number("WORLD_SIZE")
    if rank is None or not os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    if size is None or rank >= size:
        notes.append(
            f"JOB_COMPLETION_INDEX={rank} is set without a WORLD_SIZE above it, in the template of "
            "the pods"
        )
        return None
    return Launcher("an indexed Job of Kubernetes", rank, size, _meeting(rank))


def _meeting(rank: int) -> Nowhere | str:
    url = variables.master_url()
    if url is not None:
        return url
    port, first = variables.number("MASTER_PORT"), _host_of_index_0(rank)
    return variables.url_of(first, port) if port and first else Nowhere(_ADVICE)


def _host_of_index_0(rank: int) -> str | None:
    """Return the name of the pod of index 0 from this pod's, ``job-3.subdomain``."""
    own, _, domain = socket.getfqdn().partition(".")
    if not domain or not own.endswith(f"-{rank}"):
        return None
    return f"{own.removesuffix(f'-{rank}')}-0.{domain}"

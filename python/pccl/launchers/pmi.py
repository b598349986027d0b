# SPDX-License-Identifier: Apache-2.0
"""Detection of a PMI server: mpiexec of MPICH and Intel MPI, Flux, and srun --mpi=pmi2."""

from __future__ import annotations

import os
import time
import typing

from pccl.launchers import variables
from pccl.launchers.key_values import KeyValueExchange
from pccl.launchers.launcher import Launcher
from pccl.launchers.pmi1 import Pmi1Store, PmiPort
from pccl.launchers.pmi2 import Pmi2Store
from pccl.launchers.wire import Wire, is_socket

if typing.TYPE_CHECKING:
    from pccl.launchers.key_values import KeyValueStore

__all__ = ["find"]

# Launchers by a variable that they alone set.
_NAMES = (
    ("I_MPI_HYDRA_UUID", "mpiexec of Intel MPI"),
    ("HYDI_CONTROL_FD", "mpiexec of MPICH"),
    ("FLUX_JOB_ID", "flux run"),
    ("PALS_RANKID", "PALS"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
)
_LOCAL_RANKS = ("MPI_LOCALRANKID", "FLUX_TASK_LOCAL_ID", "PALS_LOCAL_RANKID", "SLURM_LOCALID")
_CONNECT_S = 30.0


def find(notes: list[str]) -> Launcher | None:
    """Return the launcher at PMI_FD or PMI_PORT; otherwise add to ``notes`` what is missing."""
    descriptor, place = variables.number("PMI_FD"), variables.PMI.place()
    if descriptor is not None and place is not None:
        if is_socket(descriptor):
            return _at_descriptor(descriptor, *place)
        notes.append(
            f"PMI_FD={descriptor} is no open socket of this process, so that it belongs to a "
            "launcher farther out"
        )
    elif os.environ.get("PMI_PORT") and os.environ.get("PMI_ID"):
        return _at_port(os.environ["PMI_PORT"], os.environ["PMI_ID"])
    elif place is not None:
        rank, size = place
        notes.append(f"PMI_RANK={rank} and PMI_SIZE={size} are set without PMI_FD or PMI_PORT")
    return None


def _name() -> str:
    return next((name for mark, name in _NAMES if os.environ.get(mark)), "a launcher")


def _launcher(at: str, rank: int, size: int, meeting: KeyValueExchange) -> Launcher:
    local = (variables.number(name) for name in _LOCAL_RANKS)
    return Launcher(
        name=f"{_name()}, {at}",
        rank=rank,
        size=size,
        meeting=meeting,
        local_rank=next((number for number in local if number is not None), None),
        local_size=variables.number("MPI_LOCALNRANKS"),
    )


def _at_descriptor(descriptor: int, rank: int, size: int) -> Launcher:
    version = 2 if _is_pmi2_of_slurm() else 1
    at = f"PMI_FD={descriptor}"
    server = f"the PMI-{version} server of {_name()} ({at})"

    def connect(deadline: float) -> KeyValueStore:
        wire = Wire.inherited(descriptor, server)
        return Pmi2Store(wire, rank, deadline) if version == 2 else Pmi1Store(wire, deadline)

    return _launcher(f"PMI-{version} ({at})", rank, size, KeyValueExchange(connect))


def _is_pmi2_of_slurm() -> bool:
    """Return whether the server is of the step of Slurm, and not of an mpiexec inside it."""
    step = f"{os.environ.get('SLURM_JOB_ID')}.{os.environ.get('SLURM_STEP_ID')}"
    is_inner = any(os.environ.get(mark) for mark in ("I_MPI_HYDRA_UUID", "HYDI_CONTROL_FD"))
    return os.environ.get("PMI_JOBID") == step and not is_inner


def _at_port(address: str, pmi_id: str) -> Launcher:
    at = f"PMI_PORT={address}"
    server = f"the PMI-1 server of {_name()} ({at})"
    port = PmiPort.connected(address, pmi_id, server, time.monotonic() + _CONNECT_S)
    meeting = KeyValueExchange(lambda deadline: Pmi1Store(port.wire, deadline))
    return _launcher(f"PMI-1 ({at})", port.rank, port.size, meeting)

# SPDX-License-Identifier: Apache-2.0
"""Numbers of launchers in the environment."""

from __future__ import annotations

import dataclasses
import os

__all__ = [
    "HIGHEST_PORT",
    "OPEN_MPI",
    "PMI",
    "SLURM",
    "Counts",
    "first_seen",
    "first_with_several",
    "master_url",
    "number",
    "url_of",
]

HIGHEST_PORT = 65535
_MOST_DIGITS = 9


@dataclasses.dataclass(frozen=True)
class Counts:
    """Variables with the rank of this process and the number of ranks."""

    rank: str
    size: str
    launcher: str

    @property
    def advice(self) -> str:
        """Clause that names the two ways out for a caller who has passed neither."""
        return (
            f'use rendezvous="auto", or "env://" with RANK=${self.rank}, WORLD_SIZE=${self.size} '
            "and one MASTER_ADDR and MASTER_PORT for all"
        )

    def place(self) -> tuple[int, int] | None:
        """Return rank and size, or None where they are missing or contradict each other."""
        rank, size = number(self.rank), number(self.size)
        if rank is None or size is None or rank >= size:
            return None
        return rank, size


OPEN_MPI = Counts("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpiexec of Open MPI")
PMI = Counts("PMI_RANK", "PMI_SIZE", "mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2")
SLURM = Counts("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun")
_ALL = (OPEN_MPI, PMI, SLURM)


def number(name: str) -> int | None:
    """Return the number in a variable, or None where it is not set or no number."""
    text = os.environ.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def first_with_several() -> Counts | None:
    """Return the launcher whose variables count several processes."""
    return next((one for one in _ALL if (number(one.size) or 0) > 1), None)


def first_seen() -> Counts | None:
    """Return the launcher whose variable with the rank is set."""
    return next((one for one in _ALL if os.environ.get(one.rank)), None)


def url_of(address: str, port: int) -> str:
    """Return the URL of a store, with brackets around an IPv6 address."""
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def master_url() -> str | None:
    """Return the URL of MASTER_ADDR and MASTER_PORT, or None where one is not set."""
    address, port = os.environ.get("MASTER_ADDR", ""), number("MASTER_PORT")
    if not address or not port or port > HIGHEST_PORT:
        return None
    return url_of(address, port)

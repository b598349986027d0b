# SPDX-License-Identifier: Apache-2.0
"""Detection of torchrun, ``pccl run`` and all others that set RANK and WORLD_SIZE."""

from __future__ import annotations

import os

from pccl.launchers import variables
from pccl.launchers.launcher import InEnvironment, Launcher, Nowhere

__all__ = ["find"]

_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_ADVICE = (
    "set MASTER_ADDR, and MASTER_PORT from 1 to 65535, or unset RANK and WORLD_SIZE where srun or "
    "mpiexec started this process"
)


def find(notes: list[str]) -> Launcher | None:
    """Return the launcher that has set RANK and WORLD_SIZE, with or without an address."""
    rank, size = variables.number("RANK"), variables.number("WORLD_SIZE")
    if rank is None or size is None or rank >= size:
        _note_what_is_wrong(notes)
        return None
    has_address = variables.master_url() is not None
    return Launcher(
        name=f"{_name()} (RANK, WORLD_SIZE{', MASTER_ADDR, MASTER_PORT' if has_address else ''})",
        rank=rank,
        size=size,
        meeting=InEnvironment() if has_address else Nowhere(_ADVICE),
        local_rank=_local_rank(rank, size),
        local_size=variables.number("LOCAL_WORLD_SIZE"),
    )


def _note_what_is_wrong(notes: list[str]) -> None:
    if not os.environ.get("RANK"):
        return
    found = [f"{name}={os.environ[name]}" for name in _NAMES if os.environ.get(name)]
    missing = [name for name in _NAMES if not os.environ.get(name)]
    wrong = f" without {', '.join(missing)}" if missing else ", which is no rank below a size"
    notes.append(", ".join(found) + wrong)


def _name() -> str:
    if os.environ.get("TORCHELASTIC_RUN_ID"):
        return "torchrun"
    return "pccl run" if os.environ.get("PCCL_STARTER_PID") else "the environment"


def _local_rank(rank: int, size: int) -> int | None:
    """Return LOCAL_RANK, or what torchrun --virtual-local-rank hides: there it is 0 for all."""
    shown, here = variables.number("LOCAL_RANK"), variables.number("LOCAL_WORLD_SIZE")
    group, groups = variables.number("GROUP_RANK"), variables.number("GROUP_WORLD_SIZE")
    if shown != 0 or not here or group is None or groups is None or here * groups != size:
        return shown
    return rank - group * here if 0 <= rank - group * here < here else shown

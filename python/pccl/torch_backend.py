# SPDX-License-Identifier: Apache-2.0
"""What the backend offers beyond ``torch.distributed``."""

from __future__ import annotations

import datetime
import time
import typing

import torch.distributed as dist

from pccl import _register
from pccl.errors import MismatchError, PeerLostError
from pccl.peer_health import PeerHealth
from pccl.table import Table
from pccl.time_limits import limit_of_timedelta

if typing.TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from pccl._torch import ProcessGroupPCCL

__all__ = ["health", "monitored_barrier", "shrink"]

_LONGEST_S = 60.0  # that ranks look for a list that all of them agree on


def require_backend(group: ProcessGroup | None, caller: str) -> ProcessGroupPCCL:
    """Return PCCL's backend of ``group``, None for the default one.

    Raises
    ------
    ValueError
        It has none; the message says what ``caller`` needs.
    """
    backend = _register.backend_of(group or dist.distributed_c10d._get_default_group())
    if backend is None:
        raise ValueError(f"{caller} needs a process group with the backend pccl")
    return backend


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | float | None = None,
    *,
    wait_all_ranks: bool = False,
) -> None:
    """Wait for all ranks, and name those that do not come.

    ``torch.distributed.monitored_barrier`` is the same; before torch 2.14 it refuses all but Gloo.

    Parameters
    ----------
    group
        The process group, or None for the default one. Ranks outside it return at once.
    timeout
        How long rank 0 waits for the others; None for the timeout of the group.
    wait_all_ranks
        Whether rank 0 names all ranks that are missing, instead of the first.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    torch.distributed.DistBackendError
        A rank did not come in time.
    """
    if dist.distributed_c10d._rank_not_in_group(group):
        return
    backend = require_backend(group, "monitored_barrier")
    if timeout is None:
        timeout = backend.options._timeout
    backend.monitored_barrier(limit_of_timedelta(timeout), wait_all_ranks)


def health(
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | float = datetime.timedelta(seconds=1),
) -> Table[PeerHealth]:
    """Ask every rank of a group how it fares, now; works whatever its user does.

    Parameters
    ----------
    group
        The process group, or None for the default one. It may be broken, but not destroyed.
    timeout
        How long each rank may take to answer.

    Returns
    -------
    Table of PeerHealth
        By rank, this one among them: a list, which notebooks show as a table.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    """
    answers = require_backend(group, "health").health(limit_of_timedelta(timeout))
    return Table(
        PeerHealth(
            rank, state, detail, last, calls, operation, tuple(awaited), on_gpu, tuple(there)
        )
        for rank, (state, detail, last, calls, operation, awaited, on_gpu, there) in enumerate(
            answers
        )
    )


def shrink(
    group: ProcessGroup | None = None,
    ranks_to_exclude: list[int] | None = None,
    *,
    least: int | None = None,
) -> ProcessGroup:
    """Go on in the same process with the ranks that are left.

    Every rank that stays must call it, within a minute; it returns when all of them have confirmed
    that they go on with the same ranks. Operations in flight are aborted, and the old group is
    destroyed; where it was the default group, the new one takes its place. After an error the old
    group is still there, and this may be called again, with the same ranks or more. It needs
    nothing of the ranks that are left out, nor a store, until CUDA tensors come: their GPUs meet
    through the old group's store.

    Parameters
    ----------
    group
        The process group, or None for the default one.
    ranks_to_exclude
        Ranks of ``group`` to leave out; None for those that are gone, silent for
        ``PCCL_PEER_TIMEOUT_MS``, or left out by others.
    least
        The fewest ranks that may go on. None for more than half of the group, or half with its
        rank 0: when it falls apart, at most one side then goes on.

    Returns
    -------
    ProcessGroup
        The smaller group.

    Raises
    ------
    ValueError
        Nobody is to be left out, or ``group`` has no backend "pccl".
    pccl.UnavailableError
        Too few ranks would be left, or others have gone on without this one.
    pccl.TimeoutError
        A rank that should stay did not call it.
    pccl.MismatchError
        A rank leaves out others.
    pccl.PeerLostError
        A rank that should stay is gone. This and the last are raised only where ranks are named.
    """
    backend = require_backend(group, "shrink")
    whole = group or dist.distributed_c10d._get_default_group()
    served = [
        each for each in whole._device_types if isinstance(whole._get_backend(each), type(backend))
    ]
    shrunk = _shrink_to_agreed(backend, group, ranks_to_exclude, least)
    # torch serves one type of device after that, the one that the group was bound to.
    smaller = shrunk._get_backend(shrunk._device_types[0])
    for device in served:
        if device not in shrunk._device_types:
            shrunk._register_backend(device, dist.ProcessGroup.BackendType.CUSTOM, smaller)
    return shrunk


def _shrink_to_agreed(
    backend: ProcessGroupPCCL,
    group: ProcessGroup | None,
    ranks_to_exclude: list[int] | None,
    least: int | None,
) -> ProcessGroup:
    """Shrink, without those who are missing: again where more are found to be meanwhile."""
    options = backend.options
    options.least = least
    deadline = time.monotonic() + _LONGEST_S
    while True:
        ranks = backend.missing() if ranks_to_exclude is None else ranks_to_exclude
        if not ranks:
            raise ValueError("all ranks of this group are here; name those to leave out")
        try:
            return dist.distributed_c10d.shrink_group(ranks, group, pg_options=options)
        except (PeerLostError, MismatchError):
            if ranks_to_exclude is not None or time.monotonic() > deadline:
                raise

# SPDX-License-Identifier: Apache-2.0
"""Functions of the backend that ``torch.distributed`` does not have."""

from __future__ import annotations

import contextlib
import datetime
import time
import typing

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store

from pccl._internal.time_limits import limit_of_timedelta
from pccl.errors import MismatchError, PeerLostError
from pccl.results.peer_health import PeerHealth
from pccl.results.table import Table
from pccl.torch import registration

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch.distributed import ProcessGroup

    from pccl._torch import ProcessGroupPCCL

__all__ = ["health", "monitored_barrier", "shrink"]

_LONGEST_S = 60.0  # for the ranks to agree on one list


def whole_of(group: ProcessGroup | None) -> ProcessGroup:
    """Return the group; the default group for None."""
    return dist.distributed_c10d._get_default_group() if group is None else group


def require_backend(
    group: ProcessGroup | None, caller: str, others: Sequence[str] = ()
) -> ProcessGroupPCCL:
    """Return PCCL's backend of ``group``; None for the default group.

    Raises
    ------
    ValueError
        The group has no backend "pccl"; the message names ``caller``.
    TypeError
        It is no process group; the message also names ``others``, which the caller accepts.
    """
    backend = registration.backend_of(whole_of(group), others)
    if backend is None:
        raise ValueError(f"{caller} needs a process group with the backend pccl")
    return backend


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | float | None = None,
    *,
    wait_all_ranks: bool = False,
) -> None:
    """Wait for all ranks; the error names the missing ranks.

    ``torch.distributed.monitored_barrier`` is equivalent, but before torch 2.14 it supports only
    Gloo.

    Parameters
    ----------
    group
        Process group; None for the default group. Ranks outside the group return at once.
    timeout
        Time that rank 0 waits for the other ranks; None for the group's timeout.
    wait_all_ranks
        Whether rank 0 names all missing ranks instead of the first one.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    torch.distributed.DistBackendError
        A rank did not call it in time.
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
    """Query the current state of every rank of a group, whose program makes no call.

    Parameters
    ----------
    group
        Process group; None for the default group. It may have failed, but must not be destroyed.
    timeout
        Maximum time to wait for the answer of each rank.

    Returns
    -------
    Table of PeerHealth
        State of every rank, including this one, by rank: a list, which notebooks show as a table.

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
    """Return a group of the remaining ranks, without restarting the processes.

    Every remaining rank must call it within a minute. It returns when all of them have confirmed
    the same list of ranks. Operations in flight are aborted, and the old group is destroyed; if it
    was the default group, the new group replaces it. After an error the old group still exists, and
    the call may be repeated, with the same excluded ranks or more. It requires neither the excluded
    ranks nor a store; only the first collective of CUDA tensors uses the old group's store, where
    the GPUs meet.

    Parameters
    ----------
    group
        Process group; None for the default group.
    ranks_to_exclude
        Ranks of ``group`` to exclude; None for the ranks that are lost, silent for
        ``PCCL_PEER_TIMEOUT_MS``, or excluded by other ranks.
    least
        Minimum number of remaining ranks. None: more than half of the group, or half with its rank
        0, so that at most one side of a partition continues.

    Returns
    -------
    ProcessGroup
        The smaller group.

    Raises
    ------
    ValueError
        No rank is to be excluded, or ``group`` has no backend "pccl".
    pccl.UnavailableError
        Too few ranks would remain, or the other ranks have excluded this rank.
    pccl.TimeoutError
        A remaining rank did not call it in time.
    pccl.MismatchError
        A remaining rank excludes other ranks.
    pccl.PeerLostError
        A remaining rank is lost. MismatchError and PeerLostError are raised only if
        ``ranks_to_exclude`` is given.
    """
    backend = require_backend(group, "shrink")
    whole = whole_of(group)
    served = [
        each for each in whole._device_types if isinstance(whole._get_backend(each), type(backend))
    ]
    shrunk = _shrink_to_agreed(backend, group, ranks_to_exclude, least)
    # After that, torch's group supports only one type of device, to which it was bound.
    smaller = shrunk._get_backend(shrunk._device_types[0])
    for device in served:
        if device not in shrunk._device_types:
            shrunk._register_backend(device, dist.ProcessGroup.BackendType.CUSTOM, smaller)
    return shrunk


class _UnclonedStore(PrefixStore):
    """Store whose ``clone`` needs no new connection to the server, which may have ended."""

    def __init__(self, store: Store) -> None:
        super().__init__("", store)
        self._store = store

    def clone(self) -> Store:
        """Return the store itself, with its present connection."""
        return self._store


@contextlib.contextmanager
def _no_clone_of_store(group: ProcessGroup) -> Iterator[None]:
    """Keep torch from cloning the group's store, after it has destroyed the group."""
    known = dist.distributed_c10d._world.pg_map
    name, store = known[group]
    known[group] = (name, _UnclonedStore(store))
    try:
        yield
    finally:
        for each, (_, present) in list(known.items()):
            if isinstance(present, _UnclonedStore):
                known[each] = (known[each][0], store)


def _shrink_to_agreed(
    backend: ProcessGroupPCCL,
    group: ProcessGroup | None,
    ranks_to_exclude: list[int] | None,
    least: int | None,
) -> ProcessGroup:
    """Shrink without the missing ranks; repeat if more ranks are found missing meanwhile."""
    options = backend.options
    options.least = least
    whole = whole_of(group)
    deadline = time.monotonic() + _LONGEST_S
    while True:
        ranks = backend.missing() if ranks_to_exclude is None else ranks_to_exclude
        if not ranks:
            raise ValueError("all ranks of this group are here; name those to leave out")
        try:
            with _no_clone_of_store(whole):
                return dist.distributed_c10d.shrink_group(ranks, group, pg_options=options)
        except (PeerLostError, MismatchError):
            if ranks_to_exclude is not None or time.monotonic() > deadline:
                raise

"""What the backend offers beyond ``torch.distributed``."""

from __future__ import annotations

import typing

import torch.distributed as dist

from pccl import _register

if typing.TYPE_CHECKING:
    import datetime

    from torch.distributed import ProcessGroup

    from pccl._torch import ProcessGroupPCCL

__all__ = ["monitored_barrier"]


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
    timeout: datetime.timedelta | None = None,
    *,
    wait_all_ranks: bool = False,
) -> None:
    """Wait for all ranks, and name those that do not come.

    ``torch.distributed.monitored_barrier`` is the same, but refuses every backend except Gloo.

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
    backend.monitored_barrier(timeout, wait_all_ranks)

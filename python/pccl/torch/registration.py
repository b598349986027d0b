# SPDX-License-Identifier: Apache-2.0
"""Registration of the backend with ``torch.distributed``, and creation of its groups."""

from __future__ import annotations

import atexit
import copy
import functools
import typing

import torch
import torch.distributed as dist

from pccl._internal.arguments import require

if typing.TYPE_CHECKING:
    import datetime
    from collections.abc import Iterator, Sequence

    from torch._C._distributed_c10d import Store

    from pccl._torch import Options, ProcessGroupPCCL

NAME = "pccl"
DEVICES = ["cpu", "cuda"]


def register() -> None:
    """Register the backend for CPU and CUDA tensors, once."""
    if dist.is_available() and not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=DEVICES)
        untyped: typing.Any = dist
        untyped.register_rendezvous_handler(NAME, _meet)


def _meet(url: str, **options: typing.Any) -> Iterator[tuple[typing.Any, int, int]]:
    """Find the ranks of ``init_method="pccl://"`` by their launcher."""
    from pccl.torch import rendezvous

    return rendezvous.meet(url, **options)


def _create(
    group: typing.Any,  # _DistributedBackendOptions of torch
    options: Options | None,
) -> ProcessGroupPCCL:
    """Create the backend of one group; torch calls this function on every member."""
    check_options(options, "pg_options")
    _shut_down_at_exit()
    return make_backend(
        group.store,
        group.group_rank,
        group.group_size,
        timeout=group.timeout,
        name=group.group_id or "default",
        global_ranks=group.global_ranks_in_group,
        options=_on_network_of_default(options),
    )


def check_options(options: Options | None, argument: str) -> None:
    """Raise TypeError for options of another type.

    Parameters
    ----------
    options
        Value of the argument; None for the defaults.
    argument
        Name of the parameter.
    """
    _load_extension()
    from pccl import _torch

    if options is not None and not isinstance(options, _torch.Options):
        raise TypeError(f"{argument} must be a pccl.Options, not {type(options).__name__}")


def make_backend(
    store: Store,
    rank: int,
    size: int,
    *,
    timeout: datetime.timedelta,
    name: str,
    global_ranks: Sequence[int] = (),
    options: Options | None = None,
) -> ProcessGroupPCCL:
    """Return the backend of a group whose ranks meet at ``store``.

    Parameters
    ----------
    store
        Store that all ranks of the group share.
    rank, size
        Place of this process in the group.
    timeout
        Maximum time of the rendezvous and of an operation.
    name
        Name of the group in messages.
    global_ranks
        Ranks of the group in the default group; empty for 0 to ``size`` - 1.
    options
        Options of the group; None for the defaults.
    """
    _load_extension()
    from pccl import _torch

    return _torch.ProcessGroupPCCL(
        store,
        rank,
        size,
        timeout=timeout,
        name=name,
        global_ranks=list(global_ranks) or list(range(size)),
        gpu=_gpu_in_use(),
        options=options,
    )


def _load_extension() -> None:
    """Import the extension module, if it fits the installed torch, and its errors."""
    from pccl.torch import compatibility

    compatibility.require_matching_torch()
    # Import the errors now: later there may be no free file descriptor for the import.
    from pccl import _torch  # noqa: F401
    from pccl.torch import errors  # noqa: F401


def _on_network_of_default(options: Options | None) -> Options | None:
    """Return options for a group that follows the phases of the default group."""
    from pccl import _torch

    leading = None if dist.group.WORLD is None else backend_of(dist.group.WORLD)
    if leading is None:
        return options
    options = _torch.Options() if options is None else copy.copy(options)
    options._follow(leading.options)
    return options


def _gpu_in_use() -> str:
    """Return the bus id of this rank's GPU; empty if CUDA is not initialized yet.

    The GPU is the ``device_id`` of torch's default group, or else the current device. torch does
    not pass the ``device_id`` of a new group to its backend.
    """
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    bound = dist.group.WORLD.bound_device_id if dist.group.WORLD is not None else None
    device = torch.cuda.current_device() if bound is None else bound
    found: typing.Any = torch.cuda.get_device_properties(device)
    return f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"


@functools.cache
def _shut_down_at_exit() -> None:
    atexit.register(_shut_down_all)


def _shut_down_all() -> None:
    """Close the groups that the program did not destroy, before the interpreter shuts down."""
    for group in list(dist.distributed_c10d._world.pg_map):
        backend = backend_of(group)
        if backend is not None:
            backend.shutdown()


def backend_of(group: dist.ProcessGroup, others: Sequence[str] = ()) -> ProcessGroupPCCL | None:
    """Return PCCL's backend of ``group``, or None if it has none.

    A TypeError names the types that the caller accepts: a process group and ``others``.
    """
    from pccl import _torch

    right = ", ".join((*others, "a process group of torch.distributed, or None"))
    require(group, dist.ProcessGroup, "group", right)
    group = getattr(group, "wrapped_pg", group)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
    for device in group._device_types:
        backend = group._get_backend(torch.device(device))
        backend = getattr(backend, "wrapped_pg", backend)
        if isinstance(backend, _torch.ProcessGroupPCCL):
            return backend
    return None

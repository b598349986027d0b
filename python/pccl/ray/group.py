# SPDX-License-Identifier: Apache-2.0
"""A group of Ray actors for ``ray.util.collective``."""

from __future__ import annotations

import datetime
import typing

from pccl._core import Communicator
from pccl._internal.client import missing_client
from pccl.errors import InvalidArgumentError
from pccl.ray.store import ClusterStore

try:
    from ray.util.collective import backend_registry
    from ray.util.collective.collective_group.base_collective_group import BaseGroup
except ModuleNotFoundError as error:
    raise missing_client("pccl.ray", "ray", error) from error

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl._core.types import _Buffer, _ReduceOp

__all__ = ["CollectiveGroup", "register"]

_NAME = "PCCL"


def register() -> None:
    """Register the backend ``"pccl"`` with ``ray.util.collective`` in this process.

    Each actor and the driver need it before they create a group. ``ray.init(runtime_env=
    {"worker_process_setup_hook": "pccl.ray.register"})`` calls it in all workers. It may be called
    again.
    """
    if not backend_registry._global_registry.is_registered(_NAME):
        backend_registry.register_collective_backend(_NAME, CollectiveGroup)


class CollectiveGroup(BaseGroup):  # type: ignore[misc]  # Ray may be absent
    """Group of ``ray.util.collective``, which creates it; users call ``pccl.ray.register``.

    The functions of ``ray.util.collective`` accept numpy arrays and CPU tensors of torch,
    contiguous ones, and all types that ``pccl.Communicator`` accepts. The actors meet in the
    key-value store of Ray's cluster.

    Parameters
    ----------
    world_size, rank
        Place of this actor in the group.
    group_name
        Name of the group.
    """

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        super().__init__(world_size, rank, group_name)
        self._comm = Communicator(
            rank=rank,
            world_size=world_size,
            rendezvous=ClusterStore(group_name),
            name=group_name,
        )

    @classmethod
    def backend(cls) -> str:
        """Return the name of the backend."""
        return _NAME

    @classmethod
    def check_backend_availability(cls) -> bool:
        """Return whether groups can be created: always."""
        return True

    def destroy_group(self) -> None:
        """Close the group; operations in flight raise AbortedError."""
        self._comm.shutdown()

    def allreduce(self, tensor: Sequence[_Buffer], allreduce_options: typing.Any) -> None:
        """Reduce a tensor over all actors, in place."""
        self._comm.all_reduce(
            _only(tensor), _op(allreduce_options), timeout=_timeout(allreduce_options)
        )

    def barrier(self, barrier_options: typing.Any = None) -> None:
        """Wait for all actors; Ray passes no options."""
        self._comm.barrier(_timeout(barrier_options))

    def reduce(self, tensor: Sequence[_Buffer], reduce_options: typing.Any) -> None:
        """Reduce a tensor over all actors, in place on the root alone."""
        buffer, root = _only(tensor), reduce_options.root_rank
        self._comm.reduce(buffer, root, _op(reduce_options), timeout=_timeout(reduce_options))

    def allgather(
        self,
        tensor_list: Sequence[Sequence[_Buffer]],
        tensor: Sequence[_Buffer],
        allgather_options: typing.Any,
    ) -> None:
        """Gather the tensors of all actors on every actor."""
        out = _only(tensor_list)
        self._comm.all_gather(out, _only(tensor), timeout=_timeout(allgather_options))

    def broadcast(self, tensor: Sequence[_Buffer], broadcast_options: typing.Any) -> None:
        """Send the root's tensor to all actors."""
        buffer, root = _only(tensor), broadcast_options.root_rank
        self._comm.broadcast(buffer, root, timeout=_timeout(broadcast_options))

    def reducescatter(
        self,
        tensor: Sequence[_Buffer],
        tensor_list: Sequence[Sequence[_Buffer]],
        reducescatter_options: typing.Any,
    ) -> None:
        """Reduce a list of tensors over all actors; each actor receives the one of its rank."""
        self._comm.reduce_scatter(
            _only(tensor),
            _only(tensor_list),
            _op(reducescatter_options),
            timeout=_timeout(reducescatter_options),
        )

    def send(self, tensor: Sequence[_Buffer], send_options: typing.Any) -> None:
        """Send a tensor to another actor."""
        peer = send_options.dst_rank
        self._comm.send(_only(tensor), peer, timeout=_timeout(send_options))

    def recv(self, tensor: Sequence[_Buffer], recv_options: typing.Any) -> None:
        """Receive a tensor from another actor."""
        peer = recv_options.src_rank
        self._comm.recv(_only(tensor), peer, timeout=_timeout(recv_options))


_T = typing.TypeVar("_T")


def _only(tensors: Sequence[_T]) -> _T:
    """Return the tensor of a list that Ray makes of one tensor; its multi-GPU calls have more."""
    if len(tensors) != 1:
        raise InvalidArgumentError(
            f"the call has {len(tensors)} tensors for this actor: PCCL has one device for each "
            "actor, so use the functions without _multigpu"
        )
    return tensors[0]


def _op(options: typing.Any) -> _ReduceOp:
    """Return the reduction of Ray's options."""
    name: _ReduceOp = options.reduceOp.name.lower()
    return name


def _timeout(options: typing.Any) -> datetime.timedelta | None:
    """Return the timeout of Ray's options; None for the group's, where they have none."""
    given: datetime.timedelta = getattr(options, "timeout_ms", datetime.timedelta(-1))
    return given if given > datetime.timedelta(0) else None

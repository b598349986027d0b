# SPDX-License-Identifier: Apache-2.0
"""The process group of one replica, which torchft configures again for every quorum."""

from __future__ import annotations

import datetime
import typing
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType

from pccl._internal.client import missing_client
from pccl.torch import registration

try:
    from torchft.process_group import ProcessGroupWrapper
except ModuleNotFoundError as error:
    raise missing_client("pccl.torchft", "torchft", error) from error

if typing.TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

    from pccl import _torch

__all__ = ["ProcessGroupPCCL"]


class ProcessGroupPCCL(ProcessGroupWrapper):  # type: ignore[misc]  # torchft may be absent
    """Process group for ``torchft.Manager(pg=...)`` on the backend pccl, for CPU and CUDA tensors.

    torchft configures the group again for each quorum. If a replica is lost, the group of that
    quorum ends on all replicas, and the next quorum has a new one.

    Parameters
    ----------
    timeout
        Maximum time of an operation, and of the rendezvous of a quorum.
    options
        Options of the group in every quorum; None for the defaults.
    """

    def __init__(
        self,
        timeout: datetime.timedelta = datetime.timedelta(seconds=60),
        options: _torch.Options | None = None,
    ) -> None:
        registration.check_options(options, "options")
        super().__init__(timeout)
        self._options = options
        self._backend: _torch.ProcessGroupPCCL | None = None
        self._end: weakref.finalize[..., typing.Any] | None = None
        self._is_aborted = False

    def _create_pg(self, store: Store, rank: int, world_size: int) -> dist.ProcessGroup:
        """Create the group of one quorum; torchft's ``configure`` calls this method."""
        backend = registration.make_backend(
            store,
            rank,
            world_size,
            timeout=self._timeout,
            name=f"torchft quorum {self._quorum_id}",
            options=self._options,
        )
        group = dist.ProcessGroup(store, rank, world_size)
        kind = dist.ProcessGroup.BackendType.CUSTOM
        group._set_default_backend(kind)
        for device in registration.DEVICES:
            group._register_backend(torch.device(device), kind, backend)
        self._backend = backend
        self._is_aborted = False
        self._end = weakref.finalize(self, backend.shutdown)  # at the latest before Python ends
        return group

    def getBackendName(self) -> str:  # torchft has this name
        """Return the name under which torchft registers the group with torch."""
        return "torchft-pccl"

    def errored(self) -> Exception | None:
        """Return an error if the group of this quorum has ended; None if it is usable.

        A replica with an error does not commit the step, and requests another quorum.
        """
        is_usable = self._backend is None or self._backend.get_error() == ErrorType.SUCCESS
        if is_usable and not self._is_aborted:
            return None
        cause = "was aborted" if self._is_aborted else "has ended after a failed operation"
        return RuntimeError(
            f"the group of torchft quorum {self._quorum_id} {cause}; it is usable again after the "
            "next quorum"
        )

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Set the maximum time of an operation, also in the present quorum.

        Parameters
        ----------
        timeout
            Maximum time.
        """
        super().set_timeout(timeout)
        if self._pg is not None:
            self._pg.set_timeout(timeout)

    def abort(self, errored: bool = True) -> None:
        """Abort the operations of this quorum on all replicas.

        Parameters
        ----------
        errored
            Whether the abort is an error, which torchft logs and ``errored`` returns.
        """
        super().abort(errored=errored)
        self._is_aborted = errored
        self._release()

    def shutdown(self) -> None:
        """Close the group of this quorum; operations in flight raise AbortedError."""
        if self._end is not None:
            self._end()
        super().shutdown()
        self._release()

    def _release(self) -> None:
        """Release the backend of the quorum that is over."""
        if self._end is not None:
            self._end.detach()
        self._end = self._backend = None

# SPDX-License-Identifier: Apache-2.0
"""Memory that ranks share."""

from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

class Workspace:
    """Host memory that every rank of a group allocates under one name; also a context manager.

    Its arrays stay valid during their lifetime: after ``release``, after the group has ended, and
    after the owning peer has exited. A rank must synchronize before it reads data that another rank
    writes, for example by a ``barrier`` after the write. The end of a ``with`` block releases it.
    """

    @property
    def name(self) -> str:
        """The name of the workspace, the same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Bytes of each rank's part."""
    @property
    def local(self) -> NDArray[np.uint8]:
        """The part of this rank: ``nbytes`` shared elements, initially zero, page-aligned.

        ``local.view(np.float32)`` returns other element types, and ``torch.from_dlpack(local)`` a
        tensor of the same memory.

        Raises
        ------
        InvalidArgumentError
            This rank has released the workspace.
        """
    def peer(self, rank: int) -> NDArray[np.uint8]:
        """Return the part of another rank of this host, readable and writable.

        Parameters
        ----------
        rank
            Rank of the owner, 0 <= rank < world_size; this rank's own number returns ``local``.

        Returns
        -------
        numpy.ndarray
            ``nbytes`` elements of uint8. The first call maps the memory; the peer must be alive
            then.

        Raises
        ------
        InvalidArgumentError
            The rank does not exist, or this rank has released the workspace.
        UnsupportedError
            The part cannot be mapped: the rank is on another host, has released the workspace, or
            has exited. Use ``send`` and ``recv``, or a collective, to transfer the content.
        """
    def release(self) -> None:
        """Release this rank's part; arrays of it, here and at peers, stay valid.

        Ranks may release at different times. It may be called again. The name may be allocated
        again when all ranks have released it.

        Raises
        ------
        UnavailableError
            The rendezvous store, in which the workspace is published, is lost.
        """
    def __enter__(self) -> Self:
        """Return the workspace: ``with comm.memory.allocate("halo", 4096) as halo:``."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the workspace.

        Parameters
        ----------
        type, error, traceback
            The exception that ends the block; None if there is none.

        Raises
        ------
        UnavailableError
            As for ``release``.
        """

class GpuMemory:
    """GPU memory with array protocols, for ``torch.from_dlpack(memory)`` and ``cupy.asarray``.

    The memory stays mapped during the lifetime of this object and of the arrays made from it.
    """

    @property
    def address(self) -> int:
        """The address of the first byte, for kernels of this process."""
    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as elements of uint8, by version 3 of Numba's protocol."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Return a capsule ``"dltensor"`` of uint8 (DLPack 0.8).

        Parameters
        ----------
        stream, max_version, dl_device, copy
            Arguments of the protocol; all are ignored. The library has no pending writes to the
            memory; the writers order their own accesses.

        Returns
        -------
        object
            Capsule for ``from_dlpack`` of any library.
        """
    def __dlpack_device__(self) -> tuple[int, ...]:
        """Return DLPack's number for CUDA, 2, and the index of the GPU.

        Returns
        -------
        tuple of int
            Device type and device index of the protocol.
        """

class GpuWorkspace:
    """GPU memory that every rank of a group allocates under one name, for user kernels.

    Kernels (CUDA, Triton or another language) read and write the memory of ``local`` and ``peer``,
    over NVLink. Kernels on several GPUs must order their accesses themselves, or by a collective
    between them. All kernels that use a workspace must have ended, on all ranks, before its memory
    is dropped. The workspace is also a context manager; the end of a ``with`` block releases it.
    """

    @property
    def name(self) -> str:
        """The name of the workspace, the same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Bytes of each rank's part."""
    @property
    def device(self) -> str:
        """The device of this rank's part, for example ``"cuda:0"``."""
    @property
    def local(self) -> GpuMemory:
        """The part of this rank, initially zero.

        Raises
        ------
        InvalidArgumentError
            This rank has released the workspace.
        """
    def peer(self, rank: int) -> GpuMemory:
        """Return the part of another rank, mapped for kernels of this rank's GPU.

        Parameters
        ----------
        rank
            Rank of the owner, 0 <= rank < world_size; this rank's own number returns ``local``.

        Returns
        -------
        GpuMemory
            Memory of ``nbytes`` bytes. ``torch.from_dlpack`` returns a tensor of this rank's GPU
            for it.

        Raises
        ------
        InvalidArgumentError
            The rank does not exist, or this rank has released the workspace.
        """
    def release(self) -> None:
        """Release the workspace here when its last array is dropped; may be called again."""
    def __enter__(self) -> Self:
        """Return the workspace."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the workspace.

        Parameters
        ----------
        type, error, traceback
            The exception that ends the block; None if there is none.
        """

class Memory:
    """Workspaces of a communicator; prints as a list."""

    @overload
    def allocate(  # type: ignore[overload-overlap]  # any other string is a GPU
        self,
        name: str,
        nbytes: int,
        device: Literal["cpu"] = "cpu",
        *,
        timeout: float | timedelta | None = None,
    ) -> Workspace:
        """Allocate memory on every rank; it lasts until it is released.

        It is a collective: all ranks call it with the same name and size. Either all ranks get the
        workspace, or none.

        Parameters
        ----------
        name
            Name of 1 to 128 bytes that does not start with ``"pccl/"`` and that no other workspace
            uses.
        nbytes
            Bytes of each rank's part, 1 or more. Pages of host memory are allocated when they are
            first touched.
        device
            ``"cpu"``: host memory. ``"cuda"``: memory of the only GPU visible to this process;
            ``"cuda:1"``: memory of GPU 1. GPU memory requires at most 8 ranks, on one host, whose
            GPUs have peer access.
        timeout
            Maximum seconds to wait for the other ranks; None for the group's timeout.

        Returns
        -------
        Workspace or GpuWorkspace
            Workspace whose ``local`` is zeroed.

        Raises
        ------
        InvalidArgumentError
            The name is invalid or in use, or ``nbytes`` is 0.
        MismatchError
            Ranks passed different names or sizes, or a rank cannot allocate; the message names the
            rank and the cause. The group remains usable, and no rank has the workspace.
        ResourceExhaustedError
            This host has not enough memory.
        UnsupportedError
            ``device`` is not supported; raised before anything is sent.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def allocate(
        self, name: str, nbytes: int, device: str, *, timeout: float | timedelta | None = None
    ) -> GpuWorkspace: ...
    @property
    def names(self) -> list[str]:
        """The names of this rank's workspaces, in alphabetical order."""

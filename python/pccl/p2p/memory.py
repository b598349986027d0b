# SPDX-License-Identifier: Apache-2.0
"""Registered memory, of this session and of its peers, and slices of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pccl.arguments import require
from pccl.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from pccl._core import _P2pMemory, _P2pRemoteMemory, _P2pSession

__all__ = ["Descriptor", "LocalSlice", "Memory", "RemoteMemory", "RemoteSlice", "sides_of"]


def _bounds(key: slice, nbytes: int) -> tuple[int, int]:
    """Return offset and length; unlike those of a list, slices must lie within the memory."""
    if key.step not in {None, 1}:
        raise InvalidArgumentError(f"slices of memory have no step, not {key.step}")
    begin = 0 if key.start is None else key.start
    end = nbytes if key.stop is None else key.stop
    if not 0 <= begin <= end <= nbytes:
        raise InvalidArgumentError(f"bytes {begin} to {end} are not within a memory of {nbytes}")
    return begin, end - begin


@dataclass(frozen=True)
class Descriptor:
    """Names one registration of one session, for peers of it."""

    _bytes: bytes = field(repr=False)  # with the nonce of the registration

    def __repr__(self) -> str:
        """Tell its size, as its bytes let peers reach the memory."""
        return f"<pccl.p2p.Descriptor of {len(self._bytes)} bytes>"

    def serialize(self) -> bytes:
        """Return fewer than 256 bytes, versioned and checksummed, the same each time."""
        return self._bytes


@dataclass(frozen=True)
class LocalSlice:
    """Bytes of a :class:`Memory`."""

    memory: Memory
    offset: int
    nbytes: int


@dataclass(frozen=True)
class RemoteSlice:
    """Bytes of a :class:`RemoteMemory`."""

    memory: RemoteMemory
    offset: int
    nbytes: int


class Memory:
    """Memory that peers reach, from ``Session.register()`` or ``Session.allocate()``.

    It stays registered, and alive, until :meth:`deregister`, or until the session closes.
    ``memory[a:b]`` are its bytes from ``a`` to before ``b``.
    """

    def __init__(self, core: _P2pMemory, session: _P2pSession) -> None:
        """Take what a session made."""
        self._core = core
        self._session = session

    @property
    def nbytes(self) -> int:
        """Bytes of the memory."""
        return self._core.nbytes

    @property
    def device(self) -> str:
        """Where it is: ``"cpu"``, or ``"cuda:1"`` as CUDA numbers GPUs in this process."""
        device = self._core.device
        return "cpu" if device < 0 else f"cuda:{device}"

    def __getitem__(self, key: slice) -> LocalSlice:
        """Return bytes of it.

        Raises
        ------
        InvalidArgumentError
            The slice is not within the memory, or has a step.
        """
        return LocalSlice(self, *_bounds(key, self.nbytes))

    def descriptor(self) -> Descriptor:
        """Return what peers hand to ``import_memory()``."""
        return Descriptor(self._core.descriptor())

    def array(self) -> NDArray[numpy.uint8]:
        """Return the memory as a numpy array of bytes, which keeps it alive.

        Raises
        ------
        InvalidArgumentError
            It is memory of a GPU.
        """
        return self._core.array()

    def deregister(self) -> None:
        """End the registration: from now on no peer reads or writes the memory. Again: nothing.

        A peer that was stopped in the middle of a write makes it take longer, 2 s or the time of a
        copy, and writes there no more when it goes on; ``docs/p2p.md`` has what that costs, and
        what is left for memory of GPUs.

        Raises
        ------
        UnavailableError
            Transfers of this session use it.
        """
        self._session.deregister(self._core)

    def __repr__(self) -> str:
        """Name the size."""
        return f"<pccl.p2p.Memory of {self.nbytes} bytes>"


class RemoteMemory:
    """Memory of a peer, from ``Session.import_memory()``; ``remote[a:b]`` are bytes of it."""

    def __init__(self, core: _P2pRemoteMemory) -> None:
        """Take what a session made."""
        self._core = core

    @property
    def nbytes(self) -> int:
        """Bytes of the memory."""
        return self._core.nbytes

    @property
    def owner(self) -> str:
        """Name of the session that it is of."""
        return self._core.owner[0]

    def __getitem__(self, key: slice) -> RemoteSlice:
        """Return bytes of it, with the errors of ``Memory[a:b]``."""
        return RemoteSlice(self, *_bounds(key, self.nbytes))

    def __repr__(self) -> str:
        """Name the owner and the size."""
        return f"<pccl.p2p.RemoteMemory of {self.nbytes} bytes of {self.owner}>"


def sides_of(
    local: LocalSlice | Memory, remote: RemoteSlice | RemoteMemory
) -> tuple[LocalSlice, RemoteSlice]:
    """Return the bytes of both sides of a transfer, which are as many."""
    here = local[:] if isinstance(local, Memory) else local
    there = remote[:] if isinstance(remote, RemoteMemory) else remote
    if not isinstance(here, LocalSlice) or not isinstance(there, RemoteSlice):
        require(here, LocalSlice, "local", "a pccl.p2p.Memory, or a slice of one")
        require(there, RemoteSlice, "remote", "a pccl.p2p.RemoteMemory, or a slice of one")
    if here.nbytes != there.nbytes:
        raise InvalidArgumentError(
            f"a transfer has as many bytes here as there, not {here.nbytes} and {there.nbytes}"
        )
    return here, there

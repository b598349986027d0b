# SPDX-License-Identifier: Apache-2.0
"""Registered memory of a session and of its peers, and slices of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pccl._internal.arguments import require
from pccl.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from pccl._core import _P2pMemory, _P2pRemoteMemory, _P2pSession

__all__ = ["Descriptor", "LocalSlice", "Memory", "RemoteMemory", "RemoteSlice", "sides_of"]


def _bounds(key: slice, nbytes: int) -> tuple[int, int]:
    """Return offset and length of a slice, which must lie within the memory (unlike a list's)."""
    require(key, slice, "key", "a slice such as memory[0:64]")
    if key.step not in {None, 1}:
        raise InvalidArgumentError(f"slices of memory have no step, not {key.step}")
    begin = 0 if key.start is None else key.start
    end = nbytes if key.stop is None else key.stop
    if not 0 <= begin <= end <= nbytes:
        raise InvalidArgumentError(f"bytes {begin} to {end} are not within a memory of {nbytes}")
    return begin, end - begin


@dataclass(frozen=True)
class Descriptor:
    """Descriptor of one memory registration, for peers of the session."""

    _bytes: bytes = field(repr=False)  # contains the nonce of the registration

    def __repr__(self) -> str:
        """Return the size without the bytes, which grant access to the memory."""
        return f"<pccl.p2p.Descriptor of {len(self._bytes)} bytes>"

    def serialize(self) -> bytes:
        """Return at most 255 bytes, versioned and checksummed, the same in every call."""
        return self._bytes


@dataclass(frozen=True)
class LocalSlice:
    """Slice of a :class:`Memory`."""

    memory: Memory
    offset: int
    nbytes: int


@dataclass(frozen=True)
class RemoteSlice:
    """Slice of a :class:`RemoteMemory`."""

    memory: RemoteMemory
    offset: int
    nbytes: int


class Memory:
    """Registered memory, from ``Session.register()`` or ``Session.allocate()``.

    Peers can read and write it. It stays registered and allocated until :meth:`deregister`, or
    until the session closes. ``memory[a:b]`` is the slice of the bytes from ``a`` up to, but not
    including, ``b``.
    """

    def __init__(self, core: _P2pMemory, session: _P2pSession) -> None:
        """Wrap an object that a session created."""
        self._core = core
        self._session = session

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._core.nbytes

    @property
    def device(self) -> str:
        """The device: ``"cpu"``, or ``"cuda:1"`` with CUDA's index in this process."""
        device = self._core.device
        return "cpu" if device < 0 else f"cuda:{device}"

    def __getitem__(self, key: slice) -> LocalSlice:
        """Return a slice of the memory.

        Raises
        ------
        InvalidArgumentError
            The slice is not within the memory, or has a step.
        """
        return LocalSlice(self, *_bounds(key, self.nbytes))

    def descriptor(self) -> Descriptor:
        """Return the descriptor that peers pass to ``import_memory()``."""
        return Descriptor(self._core.descriptor())

    def array(self) -> NDArray[numpy.uint8]:
        """Return the memory as a numpy array of bytes, which keeps it alive.

        Raises
        ------
        InvalidArgumentError
            The memory is on a GPU.
        """
        return self._core.array()

    def deregister(self) -> None:
        """End the registration, after which no peer reads or writes the memory; may be repeated.

        If a peer was stopped during a write, the call takes longer (2 s, or the time of a copy),
        and the peer no longer writes there when it continues. ``docs/reference/p2p.md`` describes
        the costs, and the limitations for GPU memory.

        Raises
        ------
        UnavailableError
            Transfers of this session use the memory.
        """
        self._session.deregister(self._core)

    def __repr__(self) -> str:
        """Return the size."""
        return f"<pccl.p2p.Memory of {self.nbytes} bytes>"


class RemoteMemory:
    """Memory of a peer, from ``Session.import_memory()``; ``remote[a:b]`` is a slice of it."""

    def __init__(self, core: _P2pRemoteMemory) -> None:
        """Wrap an object that a session created."""
        self._core = core

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._core.nbytes

    @property
    def owner(self) -> str:
        """The name of the session that owns the memory."""
        return self._core.owner[0]

    def __getitem__(self, key: slice) -> RemoteSlice:
        """Return a slice of the memory, with the errors of ``Memory[a:b]``."""
        return RemoteSlice(self, *_bounds(key, self.nbytes))

    def __repr__(self) -> str:
        """Return the owner and the size."""
        return f"<pccl.p2p.RemoteMemory of {self.nbytes} bytes of {self.owner}>"


def sides_of(
    local: LocalSlice | Memory, remote: RemoteSlice | RemoteMemory
) -> tuple[LocalSlice, RemoteSlice]:
    """Return the slices of both sides of a transfer, which have equal lengths."""
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

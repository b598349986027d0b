# SPDX-License-Identifier: Apache-2.0
"""One-sided transfers and messages between sessions."""

from datetime import timedelta
from typing import Any

from numpy.typing import NDArray

def _echo(descriptor: int) -> None:
    """Echo all data of a blocking socket until its other end is closed."""

def _time_round_trips(descriptor: int, nbytes: int, rounds: int) -> list[float]:
    """Measure round trips to an ``_echo``, and return the seconds of each."""

def _lanes_to_an_equal(is_on_host: bool) -> tuple[int, str]:
    """Return the lanes of sessions to a process with as many cores, and why there are none."""

class _PublishedStore:
    """Server of a store at free ports, until its destruction."""

    def __init__(self, secret: bytes) -> None: ...
    @property
    def addresses(self) -> list[str]:
        """The addresses at which the store listens, for example ``["10.0.0.1:40721"]``."""

class _RendezvousStore:
    """Core object of ``pccl.p2p.RendezvousStore``."""

    def __init__(self, url: str, hosts: bool, timeout: float | timedelta) -> None: ...
    @staticmethod
    def join_published(
        addresses: list[str], secret: bytes, timeout: float | timedelta
    ) -> _RendezvousStore: ...
    @property
    def server(self) -> str:
        """The address of the host that serves the store, as this process reached it."""
    def set(self, key: str, value: bytes) -> None: ...
    def look_up(self, key: str) -> bytes | None: ...
    def add(self, key: str, delta: int) -> int: ...
    def remove(self, key: str) -> None: ...

class _P2pSession:
    """Core object of ``pccl.p2p.Session``."""

    def __init__(
        self,
        name: str,
        listen: str = "",
        transports: str = "",
        tcp_sockets: int = 0,
        connect_timeout: float | timedelta = 10.0,
    ) -> None: ...
    @property
    def id(self) -> tuple[str, int]:
        """The name and the incarnation of the session."""
    @property
    def refused_requests(self) -> int:
        """The number of refused requests of peers so far."""
    def connection_info(self) -> bytes: ...
    def load(self, info: bytes) -> tuple[str, int]: ...
    @staticmethod
    def read_entry(info: bytes, descriptors: list[bytes]) -> tuple[str, list[_P2pRemoteMemory]]: ...
    def connect(self, peer: str, timeout: float | timedelta | None) -> None: ...
    def accept(self, peer: str, timeout: float | timedelta | None) -> str: ...
    def disconnect(self, peer: str) -> None: ...
    def peers(self) -> list[tuple[str, int]]: ...
    def register(self, buffer: object) -> _P2pMemory: ...
    def register_address(self, address: int, nbytes: int) -> _P2pMemory: ...
    def register_gpu(self, address: int, nbytes: int, device: int, owner: object) -> _P2pMemory: ...
    def allocate(self, nbytes: int) -> _P2pMemory: ...
    def deregister(self, memory: _P2pMemory) -> None: ...
    def import_memory(self, peer: str, descriptor: bytes) -> _P2pRemoteMemory: ...
    def publish(self, name: str, memory: _P2pMemory) -> None: ...
    def withdraw(self, name: str) -> None: ...
    def fetch(
        self, peer: str, name: str, timeout: float | timedelta | None
    ) -> _P2pRemoteMemory: ...
    def transfer(
        self,
        writes: bool,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        stream: tuple[int, int] | None,
    ) -> _P2pWork: ...
    def post(
        self,
        writes: bool,
        plan: _P2pPlan,
        indices: NDArray[Any] | None,
        notify: bytes,
        stream: tuple[int, int] | None,
    ) -> _P2pWork: ...
    def read_in_order(
        self,
        plan: _P2pPlan,
        indices: NDArray[Any] | None,
        notify: bytes,
        stream: tuple[int, int],
        timeout: float | timedelta,
    ) -> _P2pWork: ...
    def create_transfer(self, peer: str, window: int, chunk: int) -> _P2pTransfer: ...
    def time_posts(self, writes: bool, plan: _P2pPlan, rounds: int) -> list[float]: ...
    def notify(self, peer: str, payload: bytes) -> None: ...
    def notifications(self, timeout: float | timedelta | None) -> list[tuple[str, bytes]]: ...
    def close(self) -> None: ...

class _P2pMemory:
    """Memory that is registered with a session, which keeps a reference to it."""

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def device(self) -> int:
        """The index of the GPU; -1 for host memory."""
    def descriptor(self) -> bytes: ...
    def array(self) -> NDArray[Any]: ...

class _P2pRemoteMemory:
    """Memory of a peer, imported by a session."""

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def owner(self) -> tuple[str, int]:
        """The name and the incarnation of the session."""

class _P2pPlan:
    """Pairs of local and remote blocks."""

    def __init__(
        self,
        local: _P2pMemory,
        local_blocks: tuple[int, int, int, int] | NDArray[Any],
        remote: _P2pRemoteMemory,
        remote_blocks: tuple[int, int, int, int] | NDArray[Any],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int:
        """The total bytes of all blocks."""

class _P2pTransfer:
    """Messages and transfers to and from one peer, within a window."""

    def post_send(
        self,
        memory: _P2pMemory,
        offset: int,
        nbytes: int,
        tag: int,
        timeout: float | timedelta | None,
    ) -> _P2pMessage: ...
    def post_recv(
        self,
        memory: _P2pMemory,
        offset: int,
        nbytes: int,
        tag: int,
        timeout: float | timedelta | None,
    ) -> _P2pMessage: ...
    def post_read(
        self,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        timeout: float | timedelta | None,
    ) -> _P2pWork: ...
    def post_write(
        self,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        timeout: float | timedelta | None,
    ) -> _P2pWork: ...
    def is_complete(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...

class _P2pMessage:
    """Message of a ``_P2pTransfer``."""

    @property
    def nbytes(self) -> int:
        """The bytes of a completed message, otherwise 0."""
    @property
    def tag(self) -> int:
        """The tag with which it was posted."""
    @property
    def stage(self) -> str:
        """The stage of the message's progress."""
    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def __str__(self) -> str: ...

class _P2pWork:
    """One-sided transfer."""

    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...

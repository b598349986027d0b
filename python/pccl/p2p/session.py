# SPDX-License-Identifier: Apache-2.0
"""The session: endpoint for one-sided transfers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pccl import _core
from pccl._internal.arguments import require, require_int
from pccl.errors import InvalidArgumentError
from pccl.former_names import argument_under_former_name
from pccl.p2p.gpu_memory import ANY_GPU, gpu_memory_of, gpu_named, stream_named
from pccl.p2p.memory import LocalSlice, Memory, RemoteMemory, RemoteSlice, sides_of
from pccl.p2p.notification import Notification
from pccl.p2p.transfer import Transfer
from pccl.p2p.work import Blocks, Plan, Work, indices_of, whole_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from types import TracebackType

    from numpy.typing import NDArray
    from typing_extensions import Self

__all__ = ["Session"]


class Session:
    """Endpoint for one-sided transfers. It starts listening when it is constructed.

    A session reads and writes the registered memory of peers, and peers read and write its own. All
    methods are thread-safe. The session closes at the end of a ``with`` block, by :meth:`close`, or
    at the end of the process. In a child of ``fork()``, the session and all objects that it
    returned raise :class:`~pccl.UnavailableError`.

    Parameters
    ----------
    name
        Name of the session for peers: 1 to 64 printable characters without blanks.
    listen
        Address of this host at which it listens for peers of other hosts (``"10.0.0.4"``), or a
        value in the format of ``PCCL_SOCKET_IFNAME``, which is the default.
    transports
        A list of ``"shm"``, ``"verbs"`` and ``"tcp"``, such as ``"shm,tcp"``; the default is
        ``PCCL_TRANSPORTS``.
    tcp_sockets
        Sockets of each TCP stream on which it sends, 1 to 16; large transfers use all of them. 0
        for ``PCCL_TCP_SOCKETS``.
    connect_timeout
        Maximum seconds to establish a connection.

    Raises
    ------
    InvalidArgumentError
        The name, the address, a transport or the number of sockets is invalid.
    UnavailableError
        No transport is available, this host does not have the address, or this process is a fork of
        a process that uses PCCL.
    """

    def __init__(
        self,
        name: str,
        *,
        listen: str = "",
        transports: str = "",
        tcp_sockets: int = 0,
        connect_timeout: float | timedelta = 10.0,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._core = _core._P2pSession(name, listen, transports, tcp_sockets, connect_timeout)
        # Close at the end of the process, too: no thread may use memory that the interpreter has
        # freed.
        self._closing = weakref.finalize(self, self._core.close)

    @property
    def name(self) -> str:
        """The name of the session for peers."""
        return self._core.id[0]

    @property
    def incarnation(self) -> int:
        """The random number that distinguishes this session from others with the same name."""
        return self._core.id[1]

    @property
    def refused_requests(self) -> int:
        """The number of refused requests of peers so far.

        A request is refused if it exceeds registered memory. Peers of this host that copy directly
        send no requests and are not counted.
        """
        return self._core.refused_requests

    def connection_info(self) -> bytes:
        """Return the connection info for peers; every call returns the same bytes.

        It contains the session's secret, which permits connections and access to registered memory:
        exchange it over a trusted channel.
        """
        return self._core.connection_info()

    def load(self, info: bytes) -> str:
        """Load the connection info of a peer.

        A connection to an earlier session with the same name is closed.

        Parameters
        ----------
        info
            The peer's ``connection_info()``.

        Returns
        -------
        str
            The peer's name.

        Raises
        ------
        InvalidArgumentError
            ``info`` is not a connection info, or is damaged.
        UnsupportedError
            ``info`` has another version.
        """
        return self._core.load(info)[0]

    def connect(self, peer: str, timeout: float | timedelta | None = 10.0) -> None:
        """Wait until a peer is connected. Transfers connect automatically.

        The call waits for an answer of the peer. If the peer has closed an existing connection, a
        new connection is established.

        Parameters
        ----------
        peer
            Name of the peer.
        timeout
            Maximum seconds to wait. None: ``connect_timeout`` for a new connection, and no limit
            for an answer on an existing connection.

        Raises
        ------
        InvalidArgumentError
            The peer is unknown: its connection info was not loaded, and it has not connected here.
        PeerLostError
            The peer has exited.
        TimeoutError
            ``timeout`` or ``connect_timeout`` expired.
        ResourceExhaustedError
            256 requests already wait for answers of the peer.
        """
        self._core.connect(peer, timeout)

    def accept(self, peer: str | None = None, timeout: float | timedelta | None = 10.0) -> str:
        """Wait until a peer has connected, and return its name.

        Without a name, each connection of a peer is returned once, in the order of connections;
        peers that have disconnected meanwhile are skipped.

        Parameters
        ----------
        peer
            Name of the awaited peer, which may be unknown yet. If a connection to it exists, from
            either side, the call returns at once. None: any peer.
        timeout
            Maximum seconds to wait; None: no limit.

        Returns
        -------
        str
            The peer's name.

        Raises
        ------
        TimeoutError
            No peer connected in time.
        InvalidArgumentError
            The name is invalid.
        AbortedError
            This session was closed.
        """
        if peer == "":
            raise InvalidArgumentError("no session has an empty name; None awaits any")
        return self._core.accept(peer or "", timeout)

    def disconnect(self, peer: str) -> None:
        """Close the connection to a peer and end its transfers. The peer may connect again.

        Parameters
        ----------
        peer
            Name of the peer, which is notified of the close; no effect if it is not connected. The
            call waits at most 20 s until queued notifications are sent; Ctrl-C ends the wait and
            drops them.
        """
        self._core.disconnect(peer)

    def peers(self) -> list[str]:
        """Return the names of the connected peers."""
        return [name for name, _ in self._core.peers()]

    def register(
        self, buffer: object, nbytes: int | None = None, device: str | None = None
    ) -> Memory:
        """Register memory for reads and writes by peers.

        Transfers are ordered only with a CUDA stream that is passed to them. Synchronise with the
        kernels that fill a tensor before peers read it, and wait for transfers without a stream
        before kernels use their data.

        Parameters
        ----------
        buffer
            A writable C-contiguous object (numpy array, tensor of torch on a CPU or a GPU,
            ``bytearray``, or an object with ``__cuda_array_interface__``), to which the
            registration keeps a reference; or the address of ``nbytes`` bytes, which the caller
            must keep alive.
        nbytes
            Length of the memory; only with an address.
        device
            ``"cuda:1"`` or ``"cuda"`` for GPU memory; only with an address.

        Returns
        -------
        Memory
            Memory that is registered until its ``deregister()`` or the end of the session.

        Raises
        ------
        InvalidArgumentError
            The memory is strided, read-only, not on that device, or has no bytes.
        UnsupportedError
            The memory is on a GPU, and this build or machine has no CUDA.
        """
        if isinstance(buffer, int) and not isinstance(buffer, bool):
            if nbytes is None or nbytes <= 0 or buffer <= 0:
                raise InvalidArgumentError("an address comes with nbytes, both more than 0")
            if buffer + nbytes > 1 << 64:
                raise InvalidArgumentError(
                    f"{nbytes} bytes at address {buffer:#x} reach beyond the last address"
                )
            gpu = gpu_named(device)
            if gpu is None:
                return Memory(self._core.register_address(buffer, nbytes), self._core)
            return Memory(self._core.register_gpu(buffer, nbytes, gpu, None), self._core)
        if nbytes is not None or device is not None:
            raise InvalidArgumentError("nbytes and device go with an address alone")
        if (memory := gpu_memory_of(buffer)) is not None:
            return Memory(self._core.register_gpu(*memory, ANY_GPU, buffer), self._core)
        return Memory(self._core.register(buffer), self._core)

    def allocate(self, nbytes: int) -> Memory:
        """Return zeroed, registered host memory that peers of this host map.

        Pages are allocated when they are first touched. Only this kind of memory lets peers of this
        host copy without a system call. ``memory.array()`` returns it as an array.

        Parameters
        ----------
        nbytes
            Length in bytes, more than 0.

        Raises
        ------
        InvalidArgumentError
            ``nbytes`` is 0 or less.
        ResourceExhaustedError
            The machine, the control group or the limits of the process do not have enough memory
            now. Memory that this session has allocated but that is not touched yet counts as used.
        """
        require_int(nbytes, "nbytes")
        if nbytes <= 0:
            raise InvalidArgumentError(f"there is no memory of {nbytes} bytes")
        return Memory(self._core.allocate(nbytes), self._core)

    def import_memory(self, peer: str, descriptor: bytes) -> RemoteMemory:
        """Return a peer's registered memory for a descriptor.

        Parameters
        ----------
        peer
            Name of the peer.
        descriptor
            Result of ``descriptor().serialize()`` of that memory on the peer.

        Raises
        ------
        InvalidArgumentError
            The peer is unknown, or the bytes are not a descriptor.
        UnavailableError
            The descriptor belongs to another session, or to an earlier one with the same name.
        """
        return RemoteMemory(self._core.import_memory(peer, descriptor))

    def publish(self, name: str, memory: Memory) -> None:
        """Publish memory of this session under a name, for ``fetch()`` by peers.

        It stays published until ``withdraw()``, ``memory.deregister()``, or the end of the session.

        Parameters
        ----------
        name
            Name of the memory: 1 to 64 printable characters without blanks. A name that is already
            published is replaced.
        memory
            Memory from ``register()`` or ``allocate()``.

        Raises
        ------
        InvalidArgumentError
            The name is invalid, or the memory is not registered with this session.
        ResourceExhaustedError
            4096 names are already published.
        """
        require(memory, Memory, "memory", "a pccl.p2p.Memory")
        self._core.publish(name, memory._core)

    def withdraw(self, name: str) -> None:
        """Withdraw a published name; peers that have fetched the memory keep access to it.

        Parameters
        ----------
        name
            Published name; no effect if it is not published.
        """
        self._core.withdraw(name)

    def fetch(self, peer: str, name: str, timeout: float | timedelta | None = 10.0) -> RemoteMemory:
        """Fetch memory that a peer has published; the peer's program makes no call.

        Parameters
        ----------
        peer
            Name of the peer.
        name
            Name of the memory in the peer's ``publish()``.
        timeout
            Maximum seconds to wait for a connection and the answer; None: ``connect_timeout`` for a
            new connection, and no limit for the answer.

        Returns
        -------
        RemoteMemory
            Memory, as from ``import_memory()``.

        Raises
        ------
        UnavailableError
            The peer has not published that name; the message lists its names. The call may be
            repeated.
        TimeoutError
            The peer did not answer in time.
        PeerLostError
            The peer is not reachable, or ``connect_timeout`` expired.
        InvalidArgumentError
            The peer is unknown, or the name is invalid.
        ResourceExhaustedError
            256 requests already wait for answers of the peer.
        """
        return RemoteMemory(self._core.fetch(peer, name, timeout))

    def read(
        self,
        local: LocalSlice | Memory,
        remote: RemoteSlice | RemoteMemory,
        *,
        notify: bytes = b"",
        stream: object | None = None,
    ) -> Work:
        """Start to copy ``remote`` to ``local``; both have the same length.

        Parameters
        ----------
        local, remote
            Slices, or whole memories.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been read; empty:
            no notification.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. The
            copies are in stream order: they begin after the work that is already queued on the
            stream, and work that is queued after this call reads the copied bytes, without a wait
            of the host. If the transfer fails, ``wait()`` raises, but the stream continues with
            undefined data. A stream is supported only between GPUs by CUDA IPC. The first call with
            a peer waits for the connection. The whole transfer is issued at once, so ``cancel()``
            has no effect.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        InvalidArgumentError
            The sides differ in length, the local memory is no longer registered, or the stream does
            not belong to a visible GPU.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        PeerLostError
            The peer has disconnected, and its connection info was not loaded here.
        UnsupportedError
            A stream is given, but it is being captured, or the path uses host memory. Synchronise
            the stream, read without it, and ``wait()`` instead.
        TimeoutError, PeerLostError
            A stream is given, and no connection was established within ``connect_timeout``.
        """
        here, there = sides_of(local, remote)
        if stream is not None:
            return self._read_in_order(whole_plan(here, there), None, notify, stream)
        return self._transfer(False, here, there, notify, None)

    def write(
        self,
        local: LocalSlice | Memory,
        remote: RemoteSlice | RemoteMemory,
        *,
        notify: bytes = b"",
        stream: object | None = None,
    ) -> Work:
        """Start to copy ``local`` to ``remote``; both have the same length.

        Parameters
        ----------
        local, remote
            Slices, or whole memories.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been written;
            empty: no notification.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. The
            transfer, and later transfers with this peer on any path, start after the work that is
            already queued on the stream. The stream does not wait for the transfer: call ``wait()``
            before the local memory is changed.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        InvalidArgumentError
            The sides differ in length, the local memory is no longer registered, or the stream does
            not belong to a visible GPU.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        PeerLostError
            The peer has disconnected, and its connection info was not loaded here.
        UnsupportedError
            The stream is being captured into a graph.
        """
        return self._transfer(True, *sides_of(local, remote), notify, stream)

    def _transfer(
        self,
        writes: bool,
        here: LocalSlice,
        there: RemoteSlice,
        notify: bytes,
        stream: object | None,
    ) -> Work:
        return Work(
            self._core.transfer(
                writes,
                (here.memory._core, here.offset),
                (there.memory._core, there.offset),
                here.nbytes,
                notify,
                stream_named(stream, here.memory.device),
            )
        )

    def prepare(
        self,
        local: Memory,
        local_blocks: Blocks,
        remote: RemoteMemory,
        remote_blocks: Blocks,
    ) -> Plan:
        """Check many pairs of blocks once, for repeated posts.

        Blocks that are adjacent on both sides are merged into one piece.

        Parameters
        ----------
        local, remote
            The local memory, and the memory of the peer.
        local_blocks, remote_blocks
            For each side, an integer array of shape (n, 2) with offset and length in bytes, or
            ``(base, length, stride, count)`` in bytes, whose size is independent of the count.

        Returns
        -------
        Plan
            Plan for ``post_read()`` and ``post_write()``.

        Raises
        ------
        InvalidArgumentError
            A block is out of bounds, or its lengths on both sides differ; the message names the
            first such block.
        """
        return Plan(local, local_blocks, remote, remote_blocks)

    def post_read(
        self,
        plan: Plan,
        indices: Sequence[int] | NDArray[Any] | None = None,
        *,
        notify: bytes = b"",
        stream: object | None = None,
    ) -> Work:
        """Start to read blocks of a plan.

        Parameters
        ----------
        plan
            Plan from ``prepare()``.
        indices
            Numbers of the plan's blocks to transfer, one or more; None: all blocks.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been read; empty:
            no notification.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. The
            copies are in stream order: they begin after the work that is already queued on the
            stream, and work that is queued after this call reads the copied bytes, without a wait
            of the host. If the transfer fails, ``wait()`` raises, but the stream continues with
            undefined data. A stream is supported only between GPUs by CUDA IPC. The first call with
            a peer waits for the connection. The whole transfer is issued at once, so ``cancel()``
            has no effect.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        InvalidArgumentError
            A block does not exist, the local memory is no longer registered, or the stream does not
            belong to a visible GPU.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        PeerLostError
            The peer has disconnected, and its connection info was not loaded here.
        UnsupportedError
            A stream is given, but it is being captured, or the path uses host memory. Synchronise
            the stream, read without it, and ``wait()`` instead.
        TimeoutError, PeerLostError
            A stream is given, and no connection was established within ``connect_timeout``.
        """
        require(plan, Plan, "plan", "a pccl.p2p.Plan of prepare()")
        chosen = indices_of(indices, plan)
        if stream is not None:
            return self._read_in_order(plan, chosen, notify, stream)
        return Work(self._core.post(False, plan._core, chosen, notify, None))

    def post_write(
        self,
        plan: Plan,
        indices: Sequence[int] | NDArray[Any] | None = None,
        *,
        notify: bytes = b"",
        stream: object | None = None,
    ) -> Work:
        """Start to write blocks of a plan.

        Parameters
        ----------
        plan
            Plan from ``prepare()``.
        indices
            Numbers of the plan's blocks to transfer, one or more; None: all blocks.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been written;
            empty: no notification.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. The
            transfer, and later transfers with this peer on any path, start after the work that is
            already queued on the stream. The stream does not wait for the transfer: call ``wait()``
            before the local memory is changed.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        InvalidArgumentError
            A block does not exist, the local memory is no longer registered, or the stream does not
            belong to a visible GPU.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        PeerLostError
            The peer has disconnected, and its connection info was not loaded here.
        UnsupportedError
            The stream is being captured into a graph.
        """
        require(plan, Plan, "plan", "a pccl.p2p.Plan of prepare()")
        after = stream_named(stream, plan.device)
        return Work(self._core.post(True, plan._core, indices_of(indices, plan), notify, after))

    def _read_in_order(
        self, plan: Plan, indices: NDArray[Any] | None, notify: bytes, stream: object
    ) -> Work:
        address = stream_named(stream, plan.device)
        assert address is not None
        return Work(
            self._core.read_in_order(plan._core, indices, notify, address, self._connect_timeout)
        )

    def transfer(self, peer: str, *, window: int = 16, chunk: int = 4 << 20) -> Transfer:
        """Return a queue of messages and transfers with a peer, limited by a window.

        Parameters
        ----------
        peer
            Name of the peer.
        window
            Maximum number in flight of each kind (sends, receives, reads, writes), 1 or more. A
            post waits for room in the window.
        chunk
            Bytes of the pieces of a send, read or write, 4 KiB to 4 MiB. A cancel does not stop a
            piece that has started; memory is written piece by piece. ``Session(tcp_sockets=)`` sets
            the number of sockets.

        Returns
        -------
        Transfer
            Queue that connects at its first post.

        Raises
        ------
        InvalidArgumentError
            The peer is unknown, the window is less than 1, or the chunk is out of range.
        """
        require_int(window, "window")
        require_int(chunk, "chunk")
        if window < 1:
            raise InvalidArgumentError(f"a window has at least one message, not {window}")
        if chunk < 0:
            raise InvalidArgumentError(f"a chunk has 4 KiB to 4 MiB, not {chunk} bytes")
        return Transfer(self._core.create_transfer(peer, window, chunk))

    @argument_under_former_name("word", "payload")
    def notify(self, peer: str, payload: bytes) -> None:
        """Send a payload to a peer, which receives it by ``notifications()``.

        Parameters
        ----------
        peer
            Name of the peer.
        payload
            Payload of 1 byte to 16 KiB.

        Raises
        ------
        InvalidArgumentError
            The peer is unknown, or the payload is too long or empty.
        ResourceExhaustedError
            8192 notifications are already queued for the peer.
        """
        self._core.notify(peer, payload)

    def notifications(self, timeout: float | timedelta | None = 0.0) -> list[Notification]:
        """Return the notifications that have arrived since the last call.

        Parameters
        ----------
        timeout
            Maximum seconds to wait for the first notification; None: no limit.

        Returns
        -------
        list of Notification
            Notifications in order of arrival; those of one peer are in the order in which it sent
            them. In a child of ``fork()`` the list is empty, and a call with a wait raises.
        """
        return [Notification(*each) for each in self._core.notifications(timeout)]

    def close(self) -> None:
        """Close the session and its connections; repeated calls have no effect.

        Peers are notified. The call waits for queued notifications, as :meth:`disconnect` does.
        """
        self._closing()

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session."""
        self.close()

    def __repr__(self) -> str:
        """Return the name and state of the session."""
        return f"<pccl.p2p.Session {self.name}{'' if self._closing.alive else ', closed'}>"

# SPDX-License-Identifier: Apache-2.0
"""The session."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pccl import _core
from pccl.arguments import require, require_int
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
    """Listens from its making on; reaches the memory of peers, and lets them reach its own.

    All methods may be called from every thread. It closes at the end of a ``with`` block, with
    :meth:`close`, or at the end of the process. In a child of ``fork()`` it, and all that it has
    handed out, raises :class:`~pccl.UnavailableError`.

    Parameters
    ----------
    name
        What peers call it: 1 to 64 printable characters without blanks.
    listen
        Address of this host at which peers of other hosts come (``"10.0.0.4"``), or what
        ``PCCL_SOCKET_IFNAME`` takes, which is the default.
    transports
        ``"shm"``, ``"tcp"`` or ``"shm,tcp"``; the default is ``PCCL_TRANSPORTS``.
    tcp_sockets
        Of each stream over TCP that it sends on, 1 to 16: large transfers use all of them. 0 for
        ``PCCL_TCP_SOCKETS``.
    connect_timeout
        Seconds in which a connection must be made.

    Raises
    ------
    InvalidArgumentError
        The name, the address, a transport or the number of sockets is wrong.
    UnavailableError
        No transport is left, nothing listens at that address here, or this is a child of a process
        that uses PCCL.
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
        # At the end of the process, too: no thread may carry on what the interpreter has freed.
        self._closing = weakref.finalize(self, self._core.close)

    @property
    def name(self) -> str:
        """What peers call it."""
        return self._core.id[0]

    @property
    def incarnation(self) -> int:
        """Random number that tells this session from others of its name."""
        return self._core.id[1]

    @property
    def refused_requests(self) -> int:
        """Requests of peers for memory that is not registered here, or beyond it; so far.

        Peers of this host that copy by themselves ask for nothing, and are not counted.
        """
        return self._core.refused_requests

    def connection_info(self) -> bytes:
        """Return what peers need to connect, the same each time.

        It holds the session's secret: whoever has it can connect, and reach what is registered.
        """
        return self._core.connection_info()

    def load(self, info: bytes) -> str:
        """Learn how to reach a peer.

        A connection to an earlier session of that name is closed.

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
            ``info`` is none, or was damaged.
        UnsupportedError
            It is of another version.
        """
        return self._core.load(info)[0]

    def connect(self, peer: str, timeout: float | timedelta | None = 10.0) -> None:
        """Wait until there is a connection to a peer; transfers make it by themselves.

        The peer has answered by then: a connection that is here, and has ended there, does not
        count, and another one is made.

        Parameters
        ----------
        peer
            Its name.
        timeout
            Seconds to wait at most. None: ``connect_timeout`` for a connection that has to be made,
            and for as long as it takes for an answer on one that is here.

        Raises
        ------
        InvalidArgumentError
            The peer is not known: it was not loaded, and has not called here.
        PeerLostError
            Nobody is there any more.
        TimeoutError
            ``timeout`` seconds, or those of ``connect_timeout``, passed.
        ResourceExhaustedError
            256 questions wait for the peer to answer.
        """
        self._core.connect(peer, timeout)

    def accept(self, peer: str | None = None, timeout: float | timedelta | None = 10.0) -> str:
        """Wait until a peer has connected, and say who.

        Without a name each peer is told once, in the order in which they came, and again when it
        has connected anew; one that has gone by then is passed over.

        Parameters
        ----------
        peer
            The name of the one that is awaited, which need not be known yet: at once where there is
            a connection to it, whoever made that. None: any.
        timeout
            Seconds to wait at most; None: for as long as it takes.

        Returns
        -------
        str
            The peer's name.

        Raises
        ------
        TimeoutError
            Nobody has connected in time.
        InvalidArgumentError
            No session has such a name.
        AbortedError
            This session was closed.
        """
        if peer == "":
            raise InvalidArgumentError("no session has an empty name; None awaits any")
        return self._core.accept(peer or "", timeout)

    def disconnect(self, peer: str) -> None:
        """End what is under way with a peer, which hears who has gone. It may connect again.

        Parameters
        ----------
        peer
            Its name; nothing happens where there is no connection. Notifications that have not left
            are waited for, for 20 s at most; Ctrl-C ends that, and drops them.
        """
        self._core.disconnect(peer)

    def peers(self) -> list[str]:
        """Return the names of those that there is a connection to."""
        return [name for name, _ in self._core.peers()]

    def register(
        self, buffer: object, nbytes: int | None = None, device: str | None = None
    ) -> Memory:
        """Let peers read and write a memory.

        Transfers know nothing of the streams of CUDA but for the one that they are given:
        synchronise with the kernels that fill a tensor before peers read it, and with transfers
        that were given no stream before kernels use what they brought.

        Parameters
        ----------
        buffer
            A writable C-contiguous object (numpy array, tensor of torch on a CPU or a GPU,
            ``bytearray``, anything with ``__cuda_array_interface__``), which is kept as long as the
            registration; or the address of ``nbytes`` bytes, which the caller keeps.
        nbytes
            Of an address alone.
        device
            Of an address alone: ``"cuda:1"`` or ``"cuda"`` for memory of a GPU.

        Returns
        -------
        Memory
            Registered until its ``deregister()``, or the end of the session.

        Raises
        ------
        InvalidArgumentError
            The memory is strided, read-only, not on that device, or has no bytes.
        UnsupportedError
            It is on a GPU, and this build or machine has no CUDA.
        """
        if isinstance(buffer, int):
            if nbytes is None or nbytes <= 0 or buffer <= 0:
                raise InvalidArgumentError("an address comes with nbytes, both more than 0")
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
        """Return zeroed memory, registered, that peers of this host map.

        Pages are taken from the machine when they are touched. Peers copy from and to them with no
        system call, which no other memory allows. ``memory.array()`` shows it.

        Parameters
        ----------
        nbytes
            How much, more than 0.

        Raises
        ------
        InvalidArgumentError
            ``nbytes`` is 0 or less.
        ResourceExhaustedError
            That is more than can be had now: of the machine, of the limit of a control group, or of
            the process, beside what this session has allocated and nobody has touched yet.
        """
        require_int(nbytes, "nbytes")
        if nbytes <= 0:
            raise InvalidArgumentError(f"there is no memory of {nbytes} bytes")
        return Memory(self._core.allocate(nbytes), self._core)

    def import_memory(self, peer: str, descriptor: bytes) -> RemoteMemory:
        """Return memory that a peer has registered.

        Parameters
        ----------
        peer
            Its name.
        descriptor
            What the ``descriptor().serialize()`` of that memory gave there.

        Raises
        ------
        InvalidArgumentError
            The peer is not known, or the bytes are no descriptor.
        UnavailableError
            The descriptor is of another session, or of an earlier one of that name.
        """
        return RemoteMemory(self._core.import_memory(peer, descriptor))

    def publish(self, name: str, memory: Memory) -> None:
        """Tell peers that ask, by ``fetch()``, of a memory of this session.

        Until ``withdraw()``, ``memory.deregister()``, or the end of the session.

        Parameters
        ----------
        name
            What they ask for: 1 to 64 printable characters without blanks. It may have stood for
            another memory before.
        memory
            From ``register()`` or ``allocate()``.

        Raises
        ------
        InvalidArgumentError
            It is no such name, or the memory is not registered with this session.
        ResourceExhaustedError
            4096 names are published.
        """
        require(memory, Memory, "memory", "a pccl.p2p.Memory")
        self._core.publish(name, memory._core)

    def withdraw(self, name: str) -> None:
        """Tell peers of a memory no more; those that have fetched it still reach it.

        Parameters
        ----------
        name
            As it was published; nothing happens where it was not.
        """
        self._core.withdraw(name)

    def fetch(self, peer: str, name: str, timeout: float | timedelta | None = 10.0) -> RemoteMemory:
        """Ask a peer itself for memory that it has published; its program makes no call.

        Parameters
        ----------
        peer
            Its name.
        name
            Of the memory, from the peer's ``publish()``.
        timeout
            Seconds to wait for a connection and the answer; None: ``connect_timeout`` for a
            connection that has to be made, and for as long as it takes for the answer.

        Returns
        -------
        RemoteMemory
            As ``import_memory()`` gives it.

        Raises
        ------
        UnavailableError
            The peer has published nothing of that name; says what it has. Ask again later.
        TimeoutError
            It has not answered in time.
        PeerLostError
            Nobody is there, or ``connect_timeout`` has passed.
        InvalidArgumentError
            The peer is not known, or no memory has such a name.
        ResourceExhaustedError
            256 questions wait for the peer to answer.
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
        """Begin to copy ``remote`` to ``local``, of as many bytes.

        Parameters
        ----------
        local, remote
            Slices, or whole memories.
        notify
            At most 16 KiB, which the peer gets once all bytes have been read.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU, whose
            order the copies keep: they begin when it has done what it has got by now, and what it
            gets after this call finds the bytes, with no wait of the host. If the transfer fails,
            which ``wait()`` tells, the stream goes on, and finds anything there. So from GPU to GPU
            by CUDA IPC alone. The first time, the call waits for the connection, and all of it is
            on its way at once: ``cancel()`` gives nothing up.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        InvalidArgumentError
            The sides differ in length, the local memory is not registered any more, or the stream
            is none of a GPU that is known.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
        PeerLostError
            The peer was not loaded here, and has gone since it called.
        UnsupportedError
            There is a stream, and it is being captured, or bytes pass through memory of the host.
            Then synchronise the stream, read without it, and ``wait()``.
        TimeoutError, PeerLostError
            There is a stream, and no connection in ``connect_timeout``.
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
        """Begin to copy ``local`` to ``remote``, of as many bytes.

        Parameters
        ----------
        local, remote
            Slices, or whole memories.
        notify
            At most 16 KiB, which the peer gets once all bytes are there.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. Nothing
            moves before it has done what it has got by now, nor do later transfers with this peer,
            by whatever path. The stream does not wait for the transfer: what changes the local
            memory has to, by ``wait()``.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        InvalidArgumentError
            The sides differ in length, the local memory is not registered any more, or the stream
            is none of a GPU that is known.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
        PeerLostError
            The peer was not loaded here, and has gone since it called.
        UnsupportedError
            The stream is being captured.
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
        """Check many pairs of blocks once, to be posted as often as one likes.

        Blocks that touch on both sides go as one piece.

        Parameters
        ----------
        local, remote
            The memory here, and that of the peer.
        local_blocks, remote_blocks
            Of each side an integer array of shape (n, 2), offset and length in bytes; or
            ``(base, length, stride, count)``, which takes the same space for any count.

        Returns
        -------
        Plan
            For ``post_read()`` and ``post_write()``.

        Raises
        ------
        InvalidArgumentError
            Names the first block that is out of bounds, or of another length on the other side.
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
        """Begin to read blocks of a plan.

        Parameters
        ----------
        plan
            From ``prepare()``.
        indices
            Which of its blocks, by number, one or more; None: all.
        notify
            At most 16 KiB, which the peer gets once all bytes have been read.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU, whose
            order the copies keep: they begin when it has done what it has got by now, and what it
            gets after this call finds the bytes, with no wait of the host. If the transfer fails,
            which ``wait()`` tells, the stream goes on, and finds anything there. So from GPU to GPU
            by CUDA IPC alone. The first time, the call waits for the connection, and all of it is
            on its way at once: ``cancel()`` gives nothing up.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        InvalidArgumentError
            There is no such block, the local memory is not registered any more, or the stream is
            none of a GPU that is known.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
        PeerLostError
            The peer was not loaded here, and has gone since it called.
        UnsupportedError
            There is a stream, and it is being captured, or bytes pass through memory of the host.
            Then synchronise the stream, read without it, and ``wait()``.
        TimeoutError, PeerLostError
            There is a stream, and no connection in ``connect_timeout``.
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
        """Begin to write blocks of a plan.

        Parameters
        ----------
        plan
            From ``prepare()``.
        indices
            Which of its blocks, by number, one or more; None: all.
        notify
            At most 16 KiB, which the peer gets once all bytes are there.
        stream
            A ``torch.cuda.Stream``, or the address of a CUstream of the local memory's GPU. Nothing
            moves before it has done what it has got by now, nor do later transfers with this peer,
            by whatever path. The stream does not wait for the transfer: what changes the local
            memory has to, by ``wait()``.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        InvalidArgumentError
            There is no such block, the local memory is not registered any more, or the stream is
            none of a GPU that is known.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
        PeerLostError
            The peer was not loaded here, and has gone since it called.
        UnsupportedError
            The stream is being captured.
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
        """Return what moves bytes to and from a peer, at most so many transfers at a time.

        Parameters
        ----------
        peer
            Its name.
        window
            How many sends, receives, reads and writes may be under way, of each: posting waits for
            room.
        chunk
            Bytes of the pieces in which a send, a read or a write goes, 4 KiB to 4 MiB. A piece
            that has begun is not given up; memory is written piece by piece. How many sockets these
            go over is the session's: ``Session(tcp_sockets=)``.

        Returns
        -------
        Transfer
            It connects at its first post.

        Raises
        ------
        InvalidArgumentError
            The peer is not known, the window is less than 1, or the chunk is out of its range.
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
        """Send a payload to a peer, which gets it from ``notifications()``.

        Parameters
        ----------
        peer
            Its name.
        payload
            1 byte to 16 KiB.

        Raises
        ------
        InvalidArgumentError
            The peer is not known, or the payload is too long, or empty.
        ResourceExhaustedError
            8192 of them are waiting for the peer to take them.
        """
        self._core.notify(peer, payload)

    def notifications(self, timeout: float | timedelta | None = 0.0) -> list[Notification]:
        """Return those that have come since the last call.

        Parameters
        ----------
        timeout
            Seconds to wait for the first one; None: for as long as it takes.

        Returns
        -------
        list of Notification
            In the order in which they came; of one peer, that in which it sent them. In a child of
            ``fork()`` none; to wait for some raises there.
        """
        return [Notification(*each) for each in self._core.notifications(timeout)]

    def close(self) -> None:
        """End everything, and tell the peers. Again: nothing.

        Waits as :meth:`disconnect` does.
        """
        self._closing()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Name it."""
        return f"<pccl.p2p.Session {self.name}{'' if self._closing.alive else ', closed'}>"

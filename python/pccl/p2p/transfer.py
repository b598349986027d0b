# SPDX-License-Identifier: Apache-2.0
"""Tagged messages, reads and writes with one peer, limited by a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pccl._internal.arguments import require, require_int
from pccl.errors import InvalidArgumentError
from pccl.former_names import method_under_former_name
from pccl.p2p.memory import Memory, sides_of
from pccl.p2p.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from pccl._core import _P2pMessage, _P2pTransfer, _P2pWork
    from pccl.p2p.memory import LocalSlice, RemoteMemory, RemoteSlice

__all__ = ["Message", "MessageStage", "Transfer"]

#: See ``Message.stage``.
MessageStage: TypeAlias = Literal["posted", "arrived", "unpacked", "consumed"]

_MOST = 2**64 - 1


def _number(what: str, value: int) -> int:
    require_int(value, what)
    if not 0 <= value <= _MOST:
        raise InvalidArgumentError(f"{what} is 0 to 2**64 - 1, not {value}")
    return value


class Message:
    """Posted send or receive. It continues if this object is dropped."""

    def __init__(self, core: _P2pMessage) -> None:
        """Wrap an object that a transfer created."""
        self._core = core

    @property
    def nbytes(self) -> int:
        """The bytes of the completed message, at most those of the receive buffer; 0 before."""
        return self._core.nbytes

    @property
    def tag(self) -> int:
        """The tag with which it was posted."""
        return self._core.tag

    @property
    def stage(self) -> MessageStage:
        """The stage of the message. Reading it does not make progress.

        ``"posted"``: not complete. ``"arrived"`` (only for receives by messages): all bytes are in
        this process, and some are still in pinned memory before their copy to a GPU.
        ``"unpacked"``: all bytes are in the destination memory, which for a send is the peer's.
        ``"consumed"``: also, ``done()``, ``nbytes`` or a wait has reported the completion, or
        another message has taken its place in the window. A message that fails keeps its stage.
        """
        return cast("MessageStage", self._core.stage)

    def done(self) -> bool:
        """Return whether the message has ended, without blocking.

        Raises
        ------
        PeerLostError, InvalidArgumentError, UnavailableError, AbortedError
            The message has failed, as for ``wait()``.
        """
        return self._core.done()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the message has ended; raise its error if it failed.

        Parameters
        ----------
        timeout
            Maximum seconds to wait; None: no limit. The message continues after a timeout.

        Raises
        ------
        TimeoutError
            ``timeout`` expired; the message continues.
        InvalidArgumentError
            The message is longer than its receive buffer; both sides raise this.
        PeerLostError
            The peer has exited, or no connection was established within ``connect_timeout``.
        AbortedError
            The message was cancelled on either side, or one of the two sessions closed.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Cancel the message, without blocking.

        The message ends soon, successfully or with :class:`~pccl.AbortedError`; its memory must not
        be reused before.
        """
        self._core.release()

    release = method_under_former_name("release", cancel)

    def __repr__(self) -> str:
        """Return a description of the message."""
        return f"<pccl.p2p.Message: {self._core}>"


class Transfer:
    """Queue of messages and transfers with one peer, from ``Session.transfer()``.

    A window limits the number in flight. A send matches the first posted receive with its tag on
    the peer; its bytes are copied once, from memory to memory. Tags are matched between the two
    sessions, independent of the transfer object that posts. Reads and writes are invisible to the
    peer's program.
    """

    def __init__(self, core: _P2pTransfer) -> None:
        """Wrap an object that a session created."""
        self._core = core

    def post_send(
        self,
        memory: Memory,
        offset: int,
        nbytes: int,
        *,
        tag: int = 0,
        timeout: float | timedelta | None = 10.0,
    ) -> Message:
        """Start to send bytes of a memory.

        Parameters
        ----------
        memory, offset, nbytes
            Bytes to send, which must not change until the message is done.
        tag
            Tag of the peer's receive, 0 to 2**64 - 1.
        timeout
            Maximum seconds to wait for room in the window; None: no limit.

        Returns
        -------
        Message
            Message that is done when the bytes are in the peer's memory.

        Raises
        ------
        TimeoutError
            The window of sends was full until ``timeout`` expired; nothing is posted.
        InvalidArgumentError
            The bytes are not within the memory, or the memory is no longer registered.
        PeerLostError
            The peer is not reachable.
        ResourceExhaustedError
            1024 sends between the two sessions are already waiting.
        """
        require(memory, Memory, "memory", "a pccl.p2p.Memory")
        return Message(
            self._core.post_send(
                memory._core,
                _number("offset", offset),
                _number("nbytes", nbytes),
                _number("tag", tag),
                timeout,
            )
        )

    def post_recv(
        self,
        memory: Memory,
        offset: int,
        nbytes: int,
        *,
        tag: int = 0,
        timeout: float | timedelta | None = 10.0,
    ) -> Message:
        """Start to receive a message of at most ``nbytes`` bytes.

        Parameters
        ----------
        memory, offset, nbytes
            Receive buffer; the peer may write these bytes until the message is done.
        tag
            Tag of the peer's send, 0 to 2**64 - 1.
        timeout
            Maximum seconds to wait for room in the window; None: no limit.

        Returns
        -------
        Message
            Message that is done when the bytes have arrived; its ``nbytes`` is their number.

        Raises
        ------
        TimeoutError
            The window of receives was full until ``timeout`` expired; nothing is posted.
        InvalidArgumentError
            The bytes are not within the memory, or the memory is no longer registered.
        PeerLostError
            The peer is not reachable.
        ResourceExhaustedError
            1024 receives between the two sessions are already waiting.
        """
        require(memory, Memory, "memory", "a pccl.p2p.Memory")
        return Message(
            self._core.post_recv(
                memory._core,
                _number("offset", offset),
                _number("nbytes", nbytes),
                _number("tag", tag),
                timeout,
            )
        )

    def post_read(
        self,
        local: LocalSlice | Memory,
        remote: RemoteSlice | RemoteMemory,
        *,
        notify: bytes = b"",
        timeout: float | timedelta | None = 10.0,
    ) -> Work:
        """Start to copy ``remote`` to ``local``, of equal length, as ``Session.read()`` does.

        Parameters
        ----------
        local, remote
            Slices, or whole memories; the remote memory belongs to this peer.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been read; empty:
            no notification.
        timeout
            Maximum seconds to wait for room in the window; None: no limit.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        TimeoutError
            The window of reads was full until ``timeout`` expired; nothing is posted.
        InvalidArgumentError
            The sides differ in length, the remote memory belongs to another peer, or the local
            memory is no longer registered.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        """
        return self._post_one_sided(self._core.post_read, local, remote, notify, timeout)

    def post_write(
        self,
        local: LocalSlice | Memory,
        remote: RemoteSlice | RemoteMemory,
        *,
        notify: bytes = b"",
        timeout: float | timedelta | None = 10.0,
    ) -> Work:
        """Start to copy ``local`` to ``remote``, of equal length, as ``Session.write()`` does.

        Parameters
        ----------
        local, remote
            Slices, or whole memories; the remote memory belongs to this peer.
        notify
            Payload of at most 16 KiB, delivered to the peer after all bytes have been written;
            empty: no notification.
        timeout
            Maximum seconds to wait for room in the window; None: no limit.

        Returns
        -------
        Work
            The started transfer.

        Raises
        ------
        TimeoutError
            The window of writes was full until ``timeout`` expired; nothing is posted.
        InvalidArgumentError
            The sides differ in length, the remote memory belongs to another peer, or the local
            memory is no longer registered.
        UnavailableError
            The peer has restarted as another incarnation since its memory was imported.
        """
        return self._post_one_sided(self._core.post_write, local, remote, notify, timeout)

    def _post_one_sided(
        self,
        post: Callable[..., _P2pWork],
        local: LocalSlice | Memory,
        remote: RemoteSlice | RemoteMemory,
        notify: bytes,
        timeout: float | timedelta | None,
    ) -> Work:
        here, there = sides_of(local, remote)
        mine, theirs = (here.memory._core, here.offset), (there.memory._core, there.offset)
        return Work(post(mine, theirs, here.nbytes, notify, timeout))

    def is_complete(self) -> bool:
        """Return whether all posted operations have ended, successfully or not."""
        return self._core.is_complete()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until all posted operations have ended; raise the first error since the last wait.

        Parameters
        ----------
        timeout
            Maximum seconds to wait; None: no limit. The operations continue after a timeout.

        Raises
        ------
        TimeoutError
            ``timeout`` expired; the message lists the operations that have not ended.
        PeerLostError, InvalidArgumentError, UnavailableError, AbortedError
            As for ``Message.wait()``.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Cancel all operations that have not ended; does not block, as ``Message.cancel()``."""
        self._core.release()

    release = method_under_former_name("release", cancel)

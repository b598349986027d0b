# SPDX-License-Identifier: Apache-2.0
"""What goes to and from one peer within a window: messages with tags, reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pccl.arguments import require
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
    if not 0 <= value <= _MOST:
        raise InvalidArgumentError(f"{what} is 0 to 2**64 - 1, not {value}")
    return value


class Message:
    """A send or a receive that was posted. It goes on when this object is dropped."""

    def __init__(self, core: _P2pMessage) -> None:
        """Take what a transfer made."""
        self._core = core

    @property
    def nbytes(self) -> int:
        """Bytes of the message once it is done, which may be fewer than a receive has room for."""
        return self._core.nbytes

    @property
    def tag(self) -> int:
        """As it was posted."""
        return self._core.tag

    @property
    def stage(self) -> MessageStage:
        """How far it has come: a look, which does not carry it on.

        ``"posted"``; ``"arrived"``: all bytes are in this process, some in pinned memory on their
        way to a GPU, which is so of receives by messages alone; ``"unpacked"``: all are where they
        belong, of a send at the peer; ``"consumed"``: and ``done()``, ``nbytes`` or a wait has told
        the program, or its place in the window has gone to another. One that fails stays where it
        was.
        """
        return cast("MessageStage", self._core.stage)

    def done(self) -> bool:
        """Tell whether it has ended, at once.

        Raises
        ------
        PeerLostError, InvalidArgumentError, UnavailableError, AbortedError
            It has failed, as ``wait()`` tells.
        """
        return self._core.done()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until it has ended, and raise if it failed.

        Parameters
        ----------
        timeout
            Seconds to wait at most. The message goes on if they pass.

        Raises
        ------
        TimeoutError
            ``timeout`` passed, and the message goes on.
        InvalidArgumentError
            The message is longer than its receive; both sides hear that.
        PeerLostError
            The peer has gone, or was not connected in ``connect_timeout``.
        AbortedError
            It was given up, here or there, or one of the two sessions closed.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Give it up, and return at once.

        It ends soon, done or with :class:`~pccl.AbortedError`, and only then is its memory free.
        """
        self._core.release()

    release = method_under_former_name("release", cancel)

    def __repr__(self) -> str:
        """Say what it is."""
        return f"<pccl.p2p.Message: {self._core}>"


class Transfer:
    """What goes to and from one peer, at most so much at a time, from ``Session.transfer()``.

    A send goes into the first receive of its tag that the peer has posted; its bytes move once,
    from memory to memory. Tags are those of the two sessions, whichever of their transfers posts.
    Of reads and writes the peer's program knows nothing.
    """

    def __init__(self, core: _P2pTransfer) -> None:
        """Take what a session made."""
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
        """Begin to send bytes of a memory.

        Parameters
        ----------
        memory, offset, nbytes
            The bytes, which must not change until the message is done.
        tag
            0 to 2**64 - 1: which receive of the peer it goes into.
        timeout
            Seconds to wait for room in the window; None: for as long as it takes.

        Returns
        -------
        Message
            Done once the peer's memory has the bytes.

        Raises
        ------
        TimeoutError
            As many sends as the window has did not end in time; nothing is posted.
        InvalidArgumentError
            The bytes are not within the memory, or that is not registered any more.
        PeerLostError
            Nobody is there.
        ResourceExhaustedError
            1024 sends of the two sessions wait already.
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
        """Begin to receive a message, of ``nbytes`` bytes or fewer.

        Parameters
        ----------
        memory, offset, nbytes
            Where it goes; these bytes are the peer's until the message is done.
        tag
            0 to 2**64 - 1: which sends of the peer it takes.
        timeout
            Seconds to wait for room in the window; None: for as long as it takes.

        Returns
        -------
        Message
            Done once the bytes are here; its ``nbytes`` says how many.

        Raises
        ------
        TimeoutError
            As many receives as the window has did not end in time; nothing is posted.
        InvalidArgumentError
            The bytes are not within the memory, or that is not registered any more.
        PeerLostError
            Nobody is there.
        ResourceExhaustedError
            1024 receives of the two sessions wait already.
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
        """Begin to copy ``remote`` to ``local``, of as many bytes, as ``Session.read()``.

        Parameters
        ----------
        local, remote
            Slices, or whole memories; the remote one is this peer's.
        notify
            At most 16 KiB, which the peer gets once all bytes have been read.
        timeout
            Seconds to wait for room in the window; None: for as long as it takes.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        TimeoutError
            As many reads as the window has did not end in time; nothing is posted.
        InvalidArgumentError
            The sides differ in length, the remote memory is another peer's, or the local one is not
            registered any more.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
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
        """Begin to copy ``local`` to ``remote``, of as many bytes, as ``Session.write()``.

        Parameters
        ----------
        local, remote
            Slices, or whole memories; the remote one is this peer's.
        notify
            At most 16 KiB, which the peer gets once all bytes are there.
        timeout
            Seconds to wait for room in the window; None: for as long as it takes.

        Returns
        -------
        Work
            The transfer, which has begun.

        Raises
        ------
        TimeoutError
            As many writes as the window has did not end in time; nothing is posted.
        InvalidArgumentError
            The sides differ in length, the remote memory is another peer's, or the local one is not
            registered any more.
        UnavailableError
            The peer has come back as another incarnation since its memory was imported.
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
        """Tell whether all that were posted have ended, well or not."""
        return self._core.is_complete()

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until all have ended; raise the first error of those that ended since the last wait.

        Parameters
        ----------
        timeout
            Seconds to wait at most. Messages go on if they pass.

        Raises
        ------
        TimeoutError
            ``timeout`` passed; says what has not ended.
        PeerLostError, InvalidArgumentError, UnavailableError, AbortedError
            As ``Message.wait()``.
        """
        self._core.wait(timeout)

    def cancel(self) -> None:
        """Give up all that have not ended, and return at once, as ``Message.cancel()``."""
        self._core.release()

    release = method_under_former_name("release", cancel)

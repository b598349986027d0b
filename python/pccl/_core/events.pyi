# SPDX-License-Identifier: Apache-2.0
"""Completion of operations."""

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

from pccl._core.types import _Times

class Event:
    """An asynchronous operation. The caller must not touch its buffers until it is done."""

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the operation is done; raise its error if it failed.

        Parameters
        ----------
        timeout
            Maximum wait in seconds. The operation continues after a timeout. None: no limit.

        Raises
        ------
        TimeoutError
            ``timeout`` or the operation's own timeout expired.
        PeerLostError, MismatchError, AbortedError
            The operation failed.
        """
    def flush(self) -> None:
        """Wait until this rank has passed all data that it sends to its links.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed before that.
        """
    def is_done(self) -> bool:
        """Return whether the operation has ended, successfully or not. Does not block."""
    def record(self) -> _Times:
        """Return the timestamps of the operation, in seconds of the monotonic clock.

        Returns
        -------
        dict
            ``issued``, ``started``, and ``finished``, which is None until the operation is done.
        """
    def add_done_callback(self, callback: Callable[[Event], object]) -> None:
        """Register a function that is called when the operation has ended, successfully or not.

        Callbacks run one after the other on a thread of the library, in the order in which
        operations end; a callback that blocks delays the others. Exceptions of callbacks are
        written to the logger "pccl" of ``logging``.

        Parameters
        ----------
        callback
            Called once, with the event. If the operation is already done, it is called soon.

        Raises
        ------
        ResourceExhaustedError
            The process has no file descriptor left (at its first callback only).
        """
    def __await__(self) -> Generator[Any]:
        """Suspend the task until the operation is done: ``await event``.

        Other tasks of the event loop run meanwhile. Cancelling the task does not cancel the
        operation.

        Returns
        -------
        generator
            Generator for the event loop; ``await`` returns None.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed.
        """
    @property
    def source(self) -> int | None:
        """The rank that sent the received message; None until done, and for collectives."""

class DoneQueue:
    """Queue of the numbers of completed events, for ``pccl.communicator.callbacks``."""

    def __init__(self) -> None: ...
    @property
    def descriptor(self) -> int:
        """File descriptor that is readable while the queue contains numbers."""
    def expect(self, event: Event, number: int) -> None:
        """Add a number to the queue when an event is done.

        Parameters
        ----------
        event
            Event of any communicator.
        number
            0 or more.
        """
    def take(self) -> list[int]:
        """Return and remove the queued numbers, in the order in which the events ended."""

# SPDX-License-Identifier: Apache-2.0
"""Callbacks at the completion of operations, on one thread per process, and ``await``."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import threading
from typing import TYPE_CHECKING, Any

from pccl import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pccl._core import Event

__all__ = ["add", "wait"]


class _Teller:
    """Thread that waits for the completion of operations and runs their callbacks."""

    def __init__(self) -> None:
        self._queue = _core.DoneQueue()
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Event, Callable[[Event], object]]] = {}
        threading.Thread(target=self._run, name="pccl-done", daemon=True).start()

    def add(self, event: Event, callback: Callable[[Event], object]) -> None:
        number = next(self._numbers)
        self._waiting[number] = event, callback
        self._queue.expect(event, number)

    def _run(self) -> None:
        while True:
            os.eventfd_read(self._queue.descriptor)
            for number in self._queue.take():
                _call(*self._waiting.pop(number))


def _call(event: Event, callback: Callable[[Event], object]) -> None:
    try:
        callback(event)
    except Exception:
        logging.getLogger("pccl").exception("a callback of %r raised", event)


_lock = threading.Lock()
_teller: _Teller | None = None


def _forget() -> None:
    """Reset the state in a child of fork(), which does not have the thread."""
    global _lock, _teller
    _lock, _teller = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)


def add(event: Event, callback: Callable[[Event], object]) -> None:
    """Call ``callback(event)`` at the completion of ``event``; see ``Event.add_done_callback``."""
    global _teller
    with _lock:
        if _teller is None:
            _teller = _Teller()
    _teller.add(event, callback)


def wait(event: Event) -> Generator[Any, None, None]:
    """Implement ``await event`` in the event loop of this thread."""
    if not event.is_done():
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def report(_event: Event) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and no task waits
                loop.call_soon_threadsafe(_resolve, done)

        add(event, report)
        yield from done
    event.wait()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

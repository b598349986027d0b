# SPDX-License-Identifier: Apache-2.0
"""Objects that only the process that created them may use."""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any, TypeVar

from pccl.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["of_one_process"]

_Class = TypeVar("_Class", bound=type)


def of_one_process(kind: _Class) -> _Class:
    """Make public methods of a class raise in a child of fork(), where ``close`` has no effect.

    The resources of such an object (keys, leases, sockets) belong to the parent, which continues to
    use them.
    """
    for name, method in list(vars(kind).items()):
        if name == "__init__":
            setattr(kind, name, _noting_process(method))
        elif not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, _asking_process(method))
    return kind


def _noting_process(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def noting(self: Any, *arguments: Any, **options: Any) -> None:
        self._made_in = os.getpid()
        init(self, *arguments, **options)

    return noting


def _asking_process(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def requesting(self: Any, *arguments: Any, **options: Any) -> Any:
        if self._made_in == os.getpid():
            return method(self, *arguments, **options)
        if method.__name__ == "close":
            return None
        what = type(self).__name__
        raise UnavailableError(f"this {what} is of the process that this one was forked from")

    return requesting

# SPDX-License-Identifier: Apache-2.0
"""Support for names of the last release, which emit a DeprecationWarning."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["argument_under_former_name", "method_under_former_name", "warn_of_former_name"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def warn_of_former_name(former: str, current: str, stacklevel: int = 2) -> None:
    """Warn the caller's caller that ``former`` is now called ``current``.

    Parameters
    ----------
    former, current
        The two names, in the form of user code.
    stacklevel
        Number of frames from this call to the caller to warn, as for ``warnings.warn()``.
    """
    text = f"{former} is now called {current}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def method_under_former_name(former: str, method: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return ``method`` under its former name, with a warning."""

    @functools.wraps(method)
    def call(self: object, *args: object, **named: object) -> _Result:
        owner = type(self).__name__
        warn_of_former_name(f"{owner}.{former}()", f"{owner}.{method.__name__}()")
        return method(self, *args, **named)

    call.__name__ = former
    call.__doc__ = f"Call ``{method.__name__}()``, which was called so before 0.2."
    return call


def argument_under_former_name(
    former: str, current: str
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Return a decorator that accepts the former name of the argument ``current``."""

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def call(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            if former in named and current not in named:
                name = function.__name__
                warn_of_former_name(f"{name}({former}=)", f"{name}({current}=)")
                named[current] = named.pop(former)
            return function(*args, **named)

        return call

    return decorate

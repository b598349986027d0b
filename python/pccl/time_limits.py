# SPDX-License-Identifier: Apache-2.0
"""Times in seconds, as users write them; for limits in C++, csrc/base/time_limit.h has the rule."""

from __future__ import annotations

import datetime
import math
import numbers
import threading

from pccl.arguments import require, shown
from pccl.errors import InvalidArgumentError

__all__ = ["duration_of", "limit_of", "limit_of_timedelta", "seconds_of"]

# Beyond some 292,000 years, the microseconds of a timedelta overflow on the way to C++.
_LONGEST = datetime.timedelta(days=100_000_000)


def seconds_of(time: float | datetime.timedelta, argument: str) -> float:
    """Return the seconds of a time: a number of them, or a timedelta.

    Parameters
    ----------
    time
        What a user gave.
    argument
        Its name, for the error.

    Raises
    ------
    TypeError
        It is neither.
    """
    if isinstance(time, datetime.timedelta):
        return time.total_seconds()
    if isinstance(time, str | bytes) or not hasattr(time, "__float__"):
        raise TypeError(
            f"{argument} is {shown(time)}: it must be a number of seconds or a datetime.timedelta"
        )
    return float(time)


def limit_of(time: float | datetime.timedelta, argument: str = "timeout") -> float:
    """Return the seconds; 292 years, which are no limit, for infinity and whatever is longer.

    Parameters
    ----------
    time
        Seconds from 0 on, or a timedelta.
    argument
        Its name, for the error.

    Raises
    ------
    InvalidArgumentError
        It is negative, or no number (NaN).
    TypeError
        It is neither a number nor a timedelta.
    """
    seconds = seconds_of(time, argument)
    if not seconds >= 0:
        raise InvalidArgumentError(
            f"{argument} is {seconds}: give seconds from 0 on, or infinity for no limit"
        )
    return min(seconds, threading.TIMEOUT_MAX)


def duration_of(seconds: float, argument: str) -> float:
    """Return the seconds that something takes, for models that count with them.

    Parameters
    ----------
    seconds
        From 0 on, and not infinite.
    argument
        Its name, for the error.

    Raises
    ------
    InvalidArgumentError
        It is negative, infinite, or no number (NaN).
    TypeError
        It is of another type.
    """
    require(seconds, numbers.Real, argument, "a number of seconds")
    if not 0 <= seconds < math.inf:
        raise InvalidArgumentError(f"{argument} is {seconds}: give seconds from 0 on")
    return seconds


def limit_of_timedelta(
    timeout: float | datetime.timedelta, argument: str = "timeout"
) -> datetime.timedelta:
    """Return what C++ can take of a timedelta; ``timedelta.max`` is no limit.

    Parameters
    ----------
    timeout
        A timedelta, or a number of seconds. C++ refuses negative ones.
    argument
        Its name, for the error.

    Raises
    ------
    TypeError
        It is neither.
    InvalidArgumentError
        It is no number (NaN).
    """
    if isinstance(timeout, datetime.timedelta):
        return min(timeout, _LONGEST)
    seconds = seconds_of(timeout, argument)
    if math.isnan(seconds):
        raise InvalidArgumentError(f"{argument} is nan: give seconds from 0 on")
    most = _LONGEST.total_seconds()
    return datetime.timedelta(seconds=max(-most, min(seconds, most)))

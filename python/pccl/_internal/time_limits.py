# SPDX-License-Identifier: Apache-2.0
"""Parsing of times in seconds; csrc/base/time_limit.h has the rule for limits in C++."""

from __future__ import annotations

import datetime
import math
import numbers
import threading

from pccl._internal.arguments import require, shown
from pccl.errors import InvalidArgumentError

__all__ = ["duration_of", "limit_of", "limit_of_timedelta", "seconds_of"]

# Beyond about 292,000 years, the microseconds of a timedelta overflow in the conversion to C++.
_LONGEST = datetime.timedelta(days=100_000_000)


def seconds_of(time: float | datetime.timedelta, argument: str) -> float:
    """Return the seconds of a number of seconds or a timedelta.

    Parameters
    ----------
    time
        Number of seconds, or a timedelta.
    argument
        Name of the argument, for the error message.

    Raises
    ------
    TypeError
        The value is neither a number nor a timedelta.
    """
    if isinstance(time, datetime.timedelta):
        return time.total_seconds()
    if isinstance(time, str | bytes) or not hasattr(time, "__float__"):
        raise TypeError(
            f"{argument} is {shown(time)}: it must be a number of seconds or a datetime.timedelta"
        )
    try:
        return float(time)
    except OverflowError:  # an int that no float can hold
        return math.inf if time > 0 else -math.inf


def limit_of(time: float | datetime.timedelta, argument: str = "timeout") -> float:
    """Return the seconds of a limit; infinity and longer times become 292 years.

    Parameters
    ----------
    time
        Seconds, 0 or more, or a timedelta.
    argument
        Name of the argument, for the error message.

    Raises
    ------
    InvalidArgumentError
        The time is negative or NaN.
    TypeError
        The value is neither a number nor a timedelta.
    """
    seconds = seconds_of(time, argument)
    if not seconds >= 0:
        raise InvalidArgumentError(
            f"{argument} is {seconds}: give seconds from 0 on, or infinity for no limit"
        )
    return min(seconds, threading.TIMEOUT_MAX)


def duration_of(seconds: float, argument: str) -> float:
    """Return the seconds of a duration, after a check of its type and range, for models.

    Parameters
    ----------
    seconds
        Finite number, 0 or more.
    argument
        Name of the argument, for the error message.

    Raises
    ------
    InvalidArgumentError
        The duration is negative, infinite or NaN.
    TypeError
        The value is not a number.
    """
    require(seconds, numbers.Real, argument, "a number of seconds")
    if not 0 <= seconds < math.inf:
        raise InvalidArgumentError(f"{argument} is {seconds}: give seconds from 0 on")
    return seconds


def limit_of_timedelta(
    timeout: float | datetime.timedelta, argument: str = "timeout"
) -> datetime.timedelta:
    """Return a timedelta in the range of C++; ``timedelta.max`` means no limit.

    Parameters
    ----------
    timeout
        A timedelta, or a number of seconds. C++ rejects negative values.
    argument
        Name of the argument, for the error message.

    Raises
    ------
    TypeError
        The value is neither a number nor a timedelta.
    InvalidArgumentError
        The value is NaN.
    """
    if isinstance(timeout, datetime.timedelta):
        return min(timeout, _LONGEST)
    seconds = seconds_of(timeout, argument)
    if math.isnan(seconds):
        raise InvalidArgumentError(f"{argument} is nan: give seconds from 0 on")
    most = _LONGEST.total_seconds()
    return datetime.timedelta(seconds=max(-most, min(seconds, most)))

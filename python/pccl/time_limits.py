"""Times in seconds, as users write them; for limits in C++, csrc/base/time_limit.h has the rule."""

from __future__ import annotations

import datetime
import math
import threading

from pccl.errors import InvalidArgumentError

__all__ = ["duration_of", "limit_of", "limit_of_timedelta"]

# Beyond some 292,000 years, the microseconds of a timedelta overflow on the way to C++.
_LONGEST = datetime.timedelta(days=100_000_000)


def limit_of(seconds: float, argument: str = "timeout") -> float:
    """Return the seconds; 292 years, which are no limit, for infinity and whatever is longer.

    Parameters
    ----------
    seconds
        From 0 on.
    argument
        Its name, for the error.

    Raises
    ------
    InvalidArgumentError
        It is negative, or no number (NaN).
    """
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
    """
    if not 0 <= seconds < math.inf:
        raise InvalidArgumentError(f"{argument} is {seconds}: give seconds from 0 on")
    return seconds


def limit_of_timedelta(timeout: datetime.timedelta) -> datetime.timedelta:
    """Return what C++ can take of a timedelta; ``timedelta.max`` is no limit.

    Parameters
    ----------
    timeout
        C++ refuses negative ones.
    """
    return min(timeout, _LONGEST)

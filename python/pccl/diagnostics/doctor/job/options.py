# SPDX-License-Identifier: Apache-2.0
"""Limits of the examination of a job."""

from __future__ import annotations

import dataclasses
import time
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Options"]


@dataclasses.dataclass(frozen=True)
class Options:
    """Limits of an examination.

    Attributes
    ----------
    timeout_s
        Seconds that ranks may come after each other.
    rounds
        Number of other hosts with which each host is examined; 0: all.
    silence_s
        Seconds without any progress after which ranks count as gone; longer than the examination of
        a path.
    clock
        Returns the time of this host, in seconds since 1970.
    """

    timeout_s: float = 60.0
    rounds: int = 0
    silence_s: float = 45.0
    clock: Callable[[], float] = time.time

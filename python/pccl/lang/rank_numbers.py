# SPDX-License-Identifier: Apache-2.0
"""Numbers of ranks that an algorithm supports."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pccl.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["numbers_of", "numbers_text"]

MOST_NUMBERS = 1024  # kMostNumbersOfRanks of csrc/capsule/limits.h


def numbers_of(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of ranks in ascending order.

    Raises
    ------
    InvalidArgumentError
        There are no numbers or more than 1,024, or one occurs twice or is not a positive integer.
    """
    found = tuple(itertools.islice(ranks, MOST_NUMBERS + 1))
    if not 1 <= len(found) <= MOST_NUMBERS:
        raise InvalidArgumentError(
            f"ranks names {'none' if not found else 'too many numbers'}; a capsule is for 1 to "
            f"{MOST_NUMBERS} numbers of ranks"
        )
    for number in found:
        if not isinstance(number, int) or number < 1:
            raise InvalidArgumentError(f"ranks names {number!r}; numbers of ranks are 1 or more")
    if len(set(found)) < len(found):
        numbers = ", ".join(map(str, sorted(found)))
        raise InvalidArgumentError(f"ranks names a number twice: {numbers}")
    return tuple(sorted(found))


def numbers_text(ranks: int | tuple[int, ...]) -> str:
    """Return the numbers in the format of a capsule's manifest: ``"2..4 8"``."""
    numbers = (ranks,) if isinstance(ranks, int) else ranks
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"{run[0]}..{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)

# SPDX-License-Identifier: Apache-2.0
"""Rounds in which each two hosts meet once, and no host meets two others at the same time."""

from __future__ import annotations

__all__ = ["rounds"]


def rounds(hosts: int) -> list[list[tuple[int, int]]]:
    """Return the pairs of each round, by the circle method."""
    seats: list[int | None] = [*range(hosts), *([None] if hosts % 2 else [])]
    result = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        result.append(
            [(min(a, b), max(a, b)) for a, b in facing if a is not None and b is not None]
        )
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return result

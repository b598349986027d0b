# SPDX-License-Identifier: Apache-2.0
"""Table T1, worked out beforehand by brute force over every link: 100 Gb/s, 5 us, 1 us."""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Microseconds that switching takes: the last columns.
SWITCHED_IN_US = (1, 10, 100, 1000, 25000)

# ranks, ports, bytes, ms of: ring, halving-doubling and Swing forwarded over the ring, then of the
# best switching with its switches. None: not in the table.
# fmt: off
T1: list[tuple[
    int, int, int, float, float | None, float | None, list[tuple[float, int] | None]
]] = [
    (64, 1, 64 * KIB, 0.766, 1.032, 1.074,
     [(0.093, 11), (0.192, 11), (0.987, 2), (1.032, 0), (1.032, 0)]),
    (64, 1, 16 * MIB, 3.398, None, None,
     [(2.725, 11), (2.824, 11), (3.814, 11), (13.714, 11), None]),
    (64, 1, GIB, 169.870, None, None,
     [(169.197, 11), (169.296, 11), (170.286, 11), (180.186, 11), (444.186, 11)]),
    (64, 2, 64 * KIB, 0.761, 0.217, 0.160,
     [(0.088, 11), (0.155, 4), (0.217, 0), (0.217, 0), (0.217, 0)]),
    (64, 2, MIB, 0.839, 0.689, 0.404,
     [(0.166, 11), (0.265, 11), (0.689, 0), (0.689, 0), (0.689, 0)]),
    (64, 2, 16 * MIB, 2.077, 8.239, 4.296,
     [(1.404, 11), (1.503, 11), (2.493, 11), (8.239, 0), (8.239, 0)]),
    (128, 1, 64 * KIB, 1.534, 2.274, 2.358,
     [(0.107, 13), (0.224, 13), (1.394, 13), (2.274, 0), (2.274, 0)]),
    (128, 1, MIB, 1.690, None, None,
     [(0.263, 13), (0.380, 13), (1.550, 13), (8.832, 5), None]),
    (128, 1, 16 * MIB, 4.187, None, None,
     [(2.760, 13), (2.877, 13), (4.047, 13), (15.747, 13), None]),
    (128, 2, MIB, 1.607, 0.911, 0.528,
     [(0.180, 13), (0.297, 13), (0.902, 2), (0.911, 0), (0.911, 0)]),
    (128, 2, 16 * MIB, 2.856, 9.719, 4.854,
     [(1.429, 13), (1.546, 13), (2.716, 13), (9.719, 0), (9.719, 0)]),
]
# fmt: on

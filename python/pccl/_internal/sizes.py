# SPDX-License-Identifier: Apache-2.0
"""Parsing of sizes."""

from __future__ import annotations

__all__ = ["bytes_of"]

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(size: int | str) -> int:
    """Return the number of bytes of a size.

    Parameters
    ----------
    size
        ``65536``, ``"64K"`` or ``"64KB"``: K, M and G are powers of 1024.

    Raises
    ------
    ValueError
        The size is malformed or less than 1.
    """
    text = str(size).upper().removesuffix("B")
    unit = text[-1:] if text[-1:] in UNITS else ""
    digits = text.removesuffix(unit)
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError(f"no size: {size!r}; sizes are written 512, 64KB, 1M or 1GB")
    return int(digits) * UNITS[unit]

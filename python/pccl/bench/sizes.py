# SPDX-License-Identifier: Apache-2.0
"""Parsing and ranges of sizes."""

from pccl._internal.sizes import bytes_of

__all__ = ["bytes_of", "sizes_between"]


def sizes_between(smallest: int, largest: int, factor: int) -> tuple[int, ...]:
    """Return ``smallest`` times the powers of ``factor``, up to ``largest`` inclusive.

    Parameters
    ----------
    smallest, largest
        Bounds in bytes.
    factor
        Ratio of consecutive sizes: 2 or more.

    Raises
    ------
    ValueError
        ``smallest`` exceeds ``largest``, or ``factor`` is less than 2.
    """
    if factor < 2:
        raise ValueError(f"the factor between sizes is {factor}; it must be 2 or more")
    if smallest > largest:
        raise ValueError(f"the smallest size, {smallest}, is above the largest, {largest}")
    sizes = [smallest]
    while sizes[-1] * factor <= largest:
        sizes.append(sizes[-1] * factor)
    return tuple(sizes)

# SPDX-License-Identifier: Apache-2.0
"""Sizes as users write them."""

from pccl.sizes import bytes_of

__all__ = ["bytes_of", "sizes_between"]


def sizes_between(smallest: int, largest: int, factor: int) -> tuple[int, ...]:
    """Return ``smallest`` times the powers of ``factor``, up to ``largest``.

    Parameters
    ----------
    smallest, largest
        Bytes.
    factor
        2 or more.

    Raises
    ------
    ValueError
        There is no size between, or the factor is too small.
    """
    if factor < 2:
        raise ValueError(f"the factor between sizes is {factor}; it must be 2 or more")
    if smallest > largest:
        raise ValueError(f"the smallest size, {smallest}, is above the largest, {largest}")
    sizes = [smallest]
    while sizes[-1] * factor <= largest:
        sizes.append(sizes[-1] * factor)
    return tuple(sizes)

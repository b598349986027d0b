"""Sizes as users write them."""

__all__ = ["parse_size", "sizes_between"]

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """Return the bytes that ``text`` means: a number, with K, M or G for powers of 1024.

    Parameters
    ----------
    text
        ``"512"``, ``"1K"``, ``"64M"``, ``"1g"``.

    Raises
    ------
    ValueError
        It means none, or fewer than one.
    """
    unit = text[-1:].upper()
    digits, factor = (text[:-1], UNITS[unit]) if unit in UNITS else (text, 1)
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError(f"no size: {text!r}; sizes are written 512, 1K, 64M or 1G")
    return int(digits) * factor


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

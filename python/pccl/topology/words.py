# SPDX-License-Identifier: Apache-2.0
"""Numbers with nouns in singular or plural."""

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return ``"1 rank"`` or ``"2 ranks"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"

# SPDX-License-Identifier: Apache-2.0
"""Description of the capsules that a group has loaded."""

from __future__ import annotations

from dataclasses import dataclass

from pccl.results import table

__all__ = ["LoadedCapsule"]


@dataclass(frozen=True)
class LoadedCapsule:
    """A capsule that a group may use.

    Attributes
    ----------
    name
        Name, as in ``PCCL_ALGORITHM``.
    collective
        Collective of the capsule.
    sizes
        Range of bytes of the largest buffer for which the group prefers this capsule.
    digest
        First 16 hexadecimal digits of the digest.
    """

    name: str
    collective: str
    sizes: str
    digest: str

    def row(self) -> table.Fields:
        """Return the fields."""
        return table.fields_of(self)

# SPDX-License-Identifier: Apache-2.0
"""What groups tell of the capsules that they have loaded."""

from __future__ import annotations

from dataclasses import dataclass

from pccl import table

__all__ = ["LoadedCapsule"]


@dataclass(frozen=True)
class LoadedCapsule:
    """A capsule that a group may use.

    Attributes
    ----------
    name
        As ``PCCL_ALGORITHM`` has it.
    collective
        What it makes.
    sizes
        Bytes of the largest buffer for which the group takes it before all others.
    digest
        The first 16 digits of the capsule's.
    """

    name: str
    collective: str
    sizes: str
    digest: str

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)

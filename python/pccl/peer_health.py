# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a group fare."""

from __future__ import annotations

import dataclasses

from pccl import table

__all__ = ["PeerHealth"]


@dataclasses.dataclass(frozen=True)
class PeerHealth:
    """How one rank of a group fares, from itself.

    Attributes
    ----------
    rank
        As numbered in the group.
    state
        ``"here"`` when it answered, ``"silent"`` when it did not (it is stopped, or cut off),
        ``"gone"`` when its process has ended or has left the group.
    detail
        Why the group cannot be used there any more, or why it did not answer; else empty.
    last_sign_s
        Seconds since its last sign of life, which is an answer, or an operation of the last 2000
        that needed it and went well; None when there was none.
    sequence
        Collectives that it has called in this group.
    operation
        The collective that it is in, or empty.
    waits_for
        The ranks that this waits for.
    gpu_operation
        What a kernel on its GPU has waited in for more than a millisecond, over NVLink, or empty.
    gpu_waits_for
        The ranks that this waits for.
    """

    rank: int
    state: str
    detail: str
    last_sign_s: float | None
    sequence: int
    operation: str
    waits_for: tuple[int, ...]
    gpu_operation: str = ""
    gpu_waits_for: tuple[int, ...] = ()

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)

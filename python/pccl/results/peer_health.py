# SPDX-License-Identifier: Apache-2.0
"""State of the ranks of a group."""

from __future__ import annotations

import dataclasses

from pccl.results import table

__all__ = ["PeerHealth"]


@dataclasses.dataclass(frozen=True)
class PeerHealth:
    """State of one rank of a group, as that rank reports it.

    Attributes
    ----------
    rank
        The rank, as numbered in the group.
    state
        ``"here"`` if it answered, ``"silent"`` if it did not (it is stopped or disconnected),
        ``"gone"`` if its process has ended or has left the group.
    detail
        The reason why the group is unusable on that rank, or why it did not answer; otherwise
        empty.
    last_sign_s
        Seconds since its last sign of life: an answer, or a successful operation, among the last
        2000, that involved it; None if there was none.
    sequence
        The number of collectives that it has called in this group.
    operation
        Its current collective, or empty.
    waits_for
        The ranks for which this operation waits.
    gpu_operation
        The operation whose kernel on its GPU has waited more than 1 ms for peers over NVLink, or
        empty.
    gpu_waits_for
        The ranks for which this operation waits.
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

# SPDX-License-Identifier: Apache-2.0
"""Hosts of a job, from the facts of its ranks."""

from __future__ import annotations

import dataclasses
import typing
from collections import Counter

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pccl.diagnostics.doctor.job.rank_facts import RankFacts

__all__ = ["JobHost", "hosts_of", "listed"]


@dataclasses.dataclass(frozen=True)
class JobHost:
    """A host, with the facts of its ranks in their order."""

    name: str
    ranks: tuple[RankFacts, ...]

    @property
    def machine(self) -> str:
        """The kernel that the host shares with others."""
        return self.ranks[0].machine

    @property
    def visible(self) -> int:
        """The number of cores that are online."""
        return max(rank.online for rank in self.ranks)

    @property
    def cores(self) -> frozenset[int]:
        """The cores that any of its ranks may use."""
        return frozenset(core for rank in self.ranks for core in rank.cores)


def hosts_of(facts: Iterable[RankFacts]) -> list[JobHost]:
    """Return the hosts in the order of their first ranks; equal names get a number."""
    members: dict[str, list[RankFacts]] = {}
    for each in facts:
        members.setdefault(each.host, []).append(each)
    names = [ranks[0].host_name for ranks in members.values()]
    count = Counter(names)
    return [
        JobHost(name if count[name] == 1 else f"{name}#{index}", tuple(ranks))
        for index, (name, ranks) in enumerate(zip(names, members.values(), strict=True))
    ]


def listed(ranks: Sequence[int]) -> str:
    """Return ranks as a list with ranges: "rank 3", "ranks 0-7, 9"."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"

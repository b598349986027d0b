# SPDX-License-Identifier: Apache-2.0
"""The plan of an examination, which rank 0 makes for all ranks."""

from __future__ import annotations

import dataclasses
import os
import typing

from pccl.diagnostics.doctor.job import paths, tournament
from pccl.diagnostics.doctor.job.packets import TOKEN_BYTES

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.diagnostics.doctor.job.hosts import JobHost

__all__ = ["Plan", "is_crowded", "plan_of", "share_of"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Hosts, rounds, and the token that proves that a probe is of this job.

    Attributes
    ----------
    hosts
        Ranks of each host.
    rounds
        Pairs of hosts that are examined at the same time.
    pairs
        Number of all pairs of hosts.
    aim
        Part of loopback's speed below which a path is measured again.
    token
        Hexadecimal digits.
    """

    hosts: list[list[int]]
    rounds: list[list[tuple[int, int]]]
    pairs: int
    aim: float
    token: str

    def host_of(self, rank: int) -> int | None:
        """Return the number of a rank's host; None for a rank that came too late."""
        return next((at for at, ranks in enumerate(self.hosts) if rank in ranks), None)


def plan_of(hosts: Sequence[JobHost], most_rounds: int) -> Plan:
    """Return the plan for these hosts, with at most so many rounds; 0: all."""
    rounds = tournament.rounds(len(hosts))
    kept = rounds[: most_rounds or None]
    share = share_of(hosts)
    return Plan(
        hosts=[[rank.rank for rank in host.ranks] for host in hosts],
        rounds=kept,
        pairs=sum(map(len, rounds)),
        aim=2 * paths.slow_limit(is_crowded(hosts)) * share,
        token=os.urandom(TOKEN_BYTES).hex(),
    )


def is_crowded(hosts: Sequence[JobHost]) -> bool:
    """Return whether some hosts are on one machine."""
    return len({host.machine for host in hosts}) < len(hosts)


def share_of(hosts: Sequence[JobHost]) -> float:
    """Return which part of its cores a host has while all hosts are examined at once."""
    crowds: dict[str, list[JobHost]] = {}
    for host in hosts:
        crowds.setdefault(host.machine, []).append(host)
    shares = [
        len(frozenset().union(*(host.cores for host in crowd))) / len(crowd)
        for crowd in crowds.values()
    ]
    return min(1.0, *shares)

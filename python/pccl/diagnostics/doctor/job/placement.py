# SPDX-License-Identifier: Apache-2.0
"""Placement of ranks on the cores of their hosts, and in namespaces and users."""

from __future__ import annotations

import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.host.limits import descriptors_of
from pccl.diagnostics.doctor.job.hosts import listed

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pccl.diagnostics.doctor.job.hosts import JobHost

__all__ = ["check"]


def check(hosts: Sequence[JobHost]) -> Iterator[Finding]:
    """Find hosts whose ranks share cores, or cannot share memory."""
    size = sum(len(host.ranks) for host in hosts)
    for host in hosts:
        for found in (*_check_cores(host), *_check_identity(host), *_check_limits(host, size)):
            yield found.at(host.name)


def _check_cores(host: JobHost) -> Iterator[Finding]:
    ranks = len(host.ranks)
    quota = min((rank.quota for rank in host.ranks if rank.quota is not None), default=None)
    by_cores: dict[tuple[int, ...], list[int]] = {}
    for rank in host.ranks:
        by_cores.setdefault(tuple(rank.cores), []).append(rank.rank)
    # Ranks that outnumber the cores must share them.
    is_uneven = len(host.cores) < min(host.visible, ranks)
    for cores, members in by_cores.items():
        if is_uneven and cores and len(members) > len(cores):
            yield error(
                "placement.binding",
                f"{listed(members)} are bound to {len(cores)} of the host's cores, core"
                f" {cores[0]} first",
                "bind each rank to cores of its own (--bind-to core of mpirun, --cpu-bind=cores"
                " and --cpus-per-task of srun), or none of them",
                ranks=members,
                cores=list(cores),
            )
    if quota is not None and quota < ranks <= len(host.cores):
        yield warning(
            "placement.quota",
            f"{ranks} ranks have a CPU quota of {quota:g} cores together",
            f"raise cpu.max to {ranks} cores (--cpus={ranks} of docker, limits.cpu of a pod), or"
            " start fewer ranks",
            quota=quota,
            ranks=ranks,
        )


def _check_identity(host: JobHost) -> Iterator[Finding]:
    users = {rank.user for rank in host.ranks}
    if len(users) > 1:
        yield error(
            "placement.user",
            f"ranks run as different users ({', '.join(map(str, sorted(users)))}), so that they"
            " share no memory",
            "start all ranks as one user",
            users=sorted(users),
        )
    for kind, name in (("user", "user"), ("pid", "process")):
        if len({rank.namespaces.get(kind) for rank in host.ranks}) > 1:
            yield warning(
                "placement.namespaces",
                f"ranks are in different {name} namespaces, so that they cannot read each other's"
                " memory",
                f"start all ranks of the host in one container, or with one {name} namespace"
                f" (--{'userns' if kind == 'user' else 'pid'}=host of docker)",
                kind=kind,
            )


def _check_limits(host: JobHost, size: int) -> Iterator[Finding]:
    needed = descriptors_of(size)
    low = [
        rank.rank
        for rank in host.ranks
        if rank.descriptors is not None and 1024 <= rank.descriptors < needed
    ]
    if low and size > 64:
        yield warning(
            "placement.descriptors",
            f"{listed(low)} may have fewer than {needed} descriptors, which {size} ranks may need",
            f"run `ulimit -n {max(65536, needed)}` before the start of the job",
            ranks=low,
            needed=needed,
        )

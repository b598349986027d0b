# SPDX-License-Identifier: Apache-2.0
"""All checks of one host."""

from __future__ import annotations

import typing

from pccl.diagnostics.doctor import finding
from pccl.diagnostics.doctor.host import (
    cluster,
    cores,
    files,
    gpus,
    group,
    limits,
    memory,
    network,
    privileges,
    versions,
)

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.finding import Finding
    from pccl.diagnostics.doctor.root import Root

__all__ = ["SUBJECTS", "of_host", "of_rank"]

# Subjects in which ranks of one host may differ, and which take no time.
_OF_RANKS = {
    "limits": (limits.read, limits.check),
    "cores": (cores.read, cores.check),
    "memory": (memory.read, memory.check),
    "privileges": (privileges.read, privileges.check),
    "files": (files.read, files.check),
    "gpus": (gpus.read, gpus.check),
    "versions": (versions.read, versions.check),
}
_OF_HOSTS = {
    "network": (network.read, network.check),
    "cluster": (cluster.read, cluster.check),
}
SUBJECTS = {**_OF_RANKS, **_OF_HOSTS, "group": (group.read, group.check)}


def of_rank(root: Root, *, is_first_of_host: bool) -> list[Finding]:
    """Examine a rank of a job, and its host if it is the first one there."""
    subjects = {**_OF_RANKS, **_OF_HOSTS} if is_first_of_host else _OF_RANKS
    return [found for each in subjects.values() for found in finding.examine(each, root)]


def of_host(root: Root) -> list[Finding]:
    """Examine this host."""
    return [found for each in SUBJECTS.values() for found in finding.examine(each, root)]

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
    plugins,
    privileges,
    versions,
)

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.finding import Finding, Subject
    from pccl.diagnostics.doctor.host.network import Network
    from pccl.diagnostics.doctor.root import Root

__all__ = ["SUBJECTS", "of_host", "of_network", "of_rank"]

# Subjects in which ranks of one host may differ, and which take no time.
_OF_RANKS: dict[str, Subject] = {
    "limits": (limits.read, limits.check),
    "cores": (cores.read, cores.check),
    "memory": (memory.read, memory.check),
    "privileges": (privileges.read, privileges.check),
    "files": (files.read, files.check),
    "gpus": (gpus.read, gpus.check),
    "versions": (versions.read, versions.check),
    "plugins": (plugins.read, plugins.check),
}
SUBJECTS: dict[str, Subject] = {
    **_OF_RANKS,
    "network": (network.read, network.check),
    "cluster": (cluster.read, cluster.check),
    "group": (group.read, group.check),
}


def of_rank(root: Root) -> list[Finding]:
    """Examine what ranks of one host may differ in."""
    return [found for each in _OF_RANKS.values() for found in finding.examine(each, root)]


def of_network(root: Root, facts: Network) -> list[Finding]:
    """Examine the network of a host, whose facts are given, and the switches of its cluster."""
    return [*network.check(facts), *finding.examine((cluster.read, cluster.check), root)]


def of_host(root: Root) -> list[Finding]:
    """Examine this host."""
    return [found for each in SUBJECTS.values() for found in finding.examine(each, root)]

# SPDX-License-Identifier: Apache-2.0
"""Hosts of a job, with their machines."""

from __future__ import annotations

import dataclasses
import typing

if typing.TYPE_CHECKING:
    from pccl.topology.machine import Topology

__all__ = ["Host"]


@dataclasses.dataclass(frozen=True)
class Host:
    """A host of a job.

    Attributes
    ----------
    name
        Name that the host gives itself.
    ranks
        Ranks on the host, in ascending order.
    numa
        NUMA node of each rank in ``ranks``; -1 for a rank that is bound to several.
    topology
        Topology of the machine. Its ``facts`` are available on the ranks of this host only.
    interface, subnet
        Interface and subnet of the network to other hosts; empty where unknown.
    bandwidth
        Bandwidth of that network in GB/s.
    provenance
        Source of the bandwidth: ``"measured"``, ``"declared"`` or ``"assumed"``.
    is_measured
        Whether ``pccl topo --measure`` has run on the host.
    """

    name: str
    ranks: list[int]
    numa: list[int]
    topology: Topology
    interface: str
    subnet: str
    bandwidth: float
    provenance: str
    is_measured: bool

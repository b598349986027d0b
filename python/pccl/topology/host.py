# SPDX-License-Identifier: Apache-2.0
"""A host of a job, with its machine."""

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
        As the host calls itself.
    ranks
        Those that run on it, growing.
    numa
        By place in ``ranks``: the NUMA node that the rank is bound to; -1 for several.
    topology
        The machine. Who says what of it (``facts``) is known on its own ranks alone.
    interface, subnet
        Of the network by which its ranks reach other hosts; empty where unknown.
    bandwidth
        GB/s of that network.
    provenance
        Whether the bandwidth was measured, declared or assumed.
    is_measured
        Whether ``pccl topo --measure`` ran there.
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

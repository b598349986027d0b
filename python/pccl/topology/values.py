# SPDX-License-Identifier: Apache-2.0
"""Value types of machines, plans and jobs; most are classes of the C++ library."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

from pccl._core import JobLink as HostLink
from pccl._core import JobRail as Rail
from pccl._core import TopologyChannel as Channel
from pccl._core import TopologyFact as Fact
from pccl._core import TopologyNode as Node
from pccl._core import TopologyPath as Path
from pccl._core import TopologyWarning as Warning

__all__ = [
    "Channel",
    "Fact",
    "HostLink",
    "Link",
    "Node",
    "Path",
    "Pattern",
    "Rail",
    "Warning",
]

Pattern: TypeAlias = Literal["ring", "tree", "heads"]


@dataclasses.dataclass(frozen=True)
class Link:
    """Link from one node to another; its reverse is the next or previous one in ``links``.

    Attributes
    ----------
    source, target
        Names of nodes.
    type
        LOC, NVL, C2C, PCI, SYS (between NUMA nodes) or NET.
    bandwidth
        Bandwidth in GB/s.
    is_measured
        Whether ``pccl topo --measure`` measured the bandwidth.
    """

    source: str
    target: str
    type: str
    bandwidth: float
    is_measured: bool = False

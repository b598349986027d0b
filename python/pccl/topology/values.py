# SPDX-License-Identifier: Apache-2.0
"""What machines, plans and jobs are described with: values, most of them of the C++ library."""

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
    """A link from one node to another; the next or previous one in ``links`` leads back.

    Attributes
    ----------
    source, target
        Names of nodes.
    type
        LOC, NVL, C2C, PCI, SYS (between NUMA nodes) or NET.
    bandwidth
        GB/s.
    is_measured
        Whether ``pccl topo --measure`` found that bandwidth.
    """

    source: str
    target: str
    type: str
    bandwidth: float
    is_measured: bool = False

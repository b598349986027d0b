# SPDX-License-Identifier: Apache-2.0
"""Topology of machines and jobs: devices, links, warnings, and the best channels.

>>> import pccl
>>> t = pccl.topology.example("dgx1v")
>>> t.path("gpu0", "net0")
PIX, 12 GB/s, 3 hops
>>> t.search("ring", nodes=2)
ring for 2 nodes: 4 channels, 48 GB/s, NVL / PIX, optimal

docs/reference/topology.md explains paths, plans and warnings. Bandwidths are in GB/s (10^9
bytes per second) in one direction.
"""

from pccl.topology.host import Host
from pccl.topology.job import Job, job
from pccl.topology.machine import Plan, Topology, detect, example, examples, load, parse
from pccl.topology.values import Channel, Fact, HostLink, Link, Node, Path, Rail, Warning

__all__ = [
    "Channel",
    "Fact",
    "Host",
    "HostLink",
    "Job",
    "Link",
    "Node",
    "Path",
    "Plan",
    "Rail",
    "Topology",
    "Warning",
    "detect",
    "example",
    "examples",
    "job",
    "load",
    "parse",
]


def __dir__() -> list[str]:
    return sorted(__all__)

# SPDX-License-Identifier: Apache-2.0
"""Cores of the process: affinity, cpusets, quota, memory nodes, and the clock."""

from __future__ import annotations

import dataclasses
import re
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.host import cgroup
from pccl.diagnostics.doctor.root import cores_of

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Cores", "check", "read"]

MOST_THROTTLED = 0.1
_NODES = "/sys/devices/system/node"
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


@dataclasses.dataclass(frozen=True)
class Cores:
    """Cores and memory nodes that the process may use."""

    allowed: frozenset[int] = frozenset()
    quota: float | None = None
    throttled: float | None = None
    memory_nodes: frozenset[int] = frozenset()
    nodes: tuple[tuple[int, frozenset[int]], ...] = ()  # memory node, its cores
    devices: tuple[tuple[str, int], ...] = ()  # a network device, its memory node
    clock: str = ""


def read(root: Root) -> Cores:
    """Read which cores this process may use."""
    nodes = [
        (int(found[1]), cores_of(root.text(f"{_NODES}/{found[0]}/cpulist") or ""))
        for found in map(re.compile(r"node(\d+)").fullmatch, root.names(_NODES))
        if found
    ]
    return Cores(
        allowed=cores_of(root.status("Cpus_allowed_list") or ""),
        quota=cgroup.cpu_quota(root),
        throttled=cgroup.throttled_share(root),
        memory_nodes=cores_of(root.status("Mems_allowed_list") or ""),
        nodes=tuple(nodes),
        devices=tuple(_device_nodes(root)),
        clock=(root.text(_CLOCK) or "").strip(),
    )


def check(cores: Cores) -> Iterator[Finding]:
    """Find bindings, quotas and clocks that make ranks slow."""
    yield from _check_quota(cores)
    yield from _check_nodes(cores)
    if cores.clock in _SLOW_CLOCKS:
        yield warning(
            "cores.clock",
            f"the kernel reads the time from {cores.clock}, which takes about a microsecond",
            f"boot with clocksource=tsc, or write tsc (kvm-clock in a virtual machine) to {_CLOCK}",
            clock=cores.clock,
        )


def _check_quota(cores: Cores) -> Iterator[Finding]:
    if cores.quota is not None and cores.quota < 1:
        yield warning(
            "cores.quota",
            f"the CPU quota of the cgroup is {cores.quota:g} cores, less than one",
            "raise cpu.max (cpu.cfs_quota_us of version 1, --cpus of docker, limits.cpu of a pod)"
            " to a core for each rank",
            quota=cores.quota,
        )
    if cores.throttled is not None and cores.throttled > MOST_THROTTLED:
        yield warning(
            "cores.throttled",
            f"the CPU quota stopped this cgroup in {cores.throttled:.0%} of its periods",
            "raise cpu.max (--cpus of docker, limits.cpu of a pod), or start fewer threads"
            " (OMP_NUM_THREADS)",
            share=cores.throttled,
        )


def _check_nodes(cores: Cores) -> Iterator[Finding]:
    own = {node for node, members in cores.nodes if members & cores.allowed}
    if own and cores.memory_nodes and not own & cores.memory_nodes:
        yield error(
            "cores.memory_node",
            f"the process runs on NUMA node {_listed(own)}, and its memory is on node"
            f" {_listed(cores.memory_nodes)}",
            f"set cpuset.mems to {_listed(own)} (numactl --membind={_listed(own)})",
            cores=sorted(own),
            memory=sorted(cores.memory_nodes),
        )
    far = [(name, node) for name, node in cores.devices if node not in own]
    if own and cores.devices and len(far) == len(cores.devices):
        name, node = far[0]
        yield warning(
            "cores.device_node",
            f"{name} is on NUMA node {node}, and the process may only run on node {_listed(own)}",
            f"bind ranks to cores of node {node} (numactl --cpunodebind={node})",
            device=name,
            node=node,
        )


def _device_nodes(root: Root) -> Iterator[tuple[str, int]]:
    """Return the network devices of hardware that are up, with their memory nodes."""
    for name in root.names("/sys/class/net"):
        node = root.number(f"/sys/class/net/{name}/device/numa_node")
        is_up = (root.text(f"/sys/class/net/{name}/operstate") or "").strip() == "up"
        if node is not None and node >= 0 and is_up:
            yield name, node


def _listed(numbers: typing.Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))

# SPDX-License-Identifier: Apache-2.0
"""Whether a plan is legal, found out without the search.

Works on what ``pccl.topology`` shows of the machine: nodes, links, and the way each path takes. The
rules are those of docs/reference/topology.md.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pccl import topology

TYPES = ["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"]
Load = dict[tuple[str, str], float]


class Judge:
    """Adds up what the channels of plans take of every link of one machine."""

    def __init__(self, machine: topology.Topology) -> None:
        self.machine = machine
        self.nodes = {node.name: node for node in machine.nodes}
        self.width: Load = collections.defaultdict(float)
        for link in machine.links:
            self.width[link.source, link.target] += link.bandwidth
        vendors = [fact for fact in machine.facts if fact.attribute == "vendor"]
        by_cpu = {fact.device: fact.value for fact in vendors if fact.device.startswith("cpu ")}
        self.intel = {
            name.replace(" ", "") for name, value in by_cpu.items() if value == "GenuineIntel"
        }
        self.known: dict[tuple[str, str], topology.Path] = {}

    def path(self, source: str, target: str) -> topology.Path:
        if (source, target) not in self.known:
            self.known[source, target] = self.machine.path(source, target)
        return self.known[source, target]

    def charge(self, load: Load, source: str, target: str, amount: float) -> str:
        """Add one transfer to ``load``; give the type of its path."""
        path = self.path(source, target)
        assert path.type != "DIS", f"no way from {source} to {target}"
        assert path.nodes[0] == source
        assert path.nodes[-1] == target
        through_intel = path.type == "PHB" and any(name in self.intel for name in path.nodes)
        are_gpus = self.nodes[source].type == self.nodes[target].type == "gpu"
        for here, there in itertools.pairwise(path.nodes):
            assert (here, there) in self.width, f"no link {here} -> {there}"
            is_pci = {self.nodes[here].type, self.nodes[there].type} <= {"gpu", "pci", "cpu", "nic"}
            is_pci = is_pci and not (here.startswith("cpu") and there.startswith("cpu"))
            load[here, there] += amount * (1.2 if through_intel and are_gpus and is_pci else 1)
            into_old_gpu = there.startswith("gpu") and self.nodes[there].sm < 80
            if into_old_gpu and not here.startswith(("gpu", "nvs")):
                load[there, here] += amount / 8
        return path.type

    def load_of(self, plan: topology.Plan) -> tuple[Load, set[str], set[str]]:
        """Give the load of each link, and the types of paths between GPUs and to NICs."""
        load: Load = collections.defaultdict(float)
        intra: set[str] = set()
        inter: set[str] = set()
        share = (plan.nodes - 1) / plan.nodes if plan.pattern == "tree" else 1
        for channel in plan.channels:
            gpus = [f"gpu{index}" for index in channel.order]
            if plan.pattern == "heads":
                self._charge_head(load, gpus, channel.bandwidth)
                intra.add("NVL")
            else:
                hops = list(itertools.pairwise(gpus))
                if plan.pattern == "ring" and plan.nodes == 1 and len(gpus) > 1:
                    hops.append((gpus[-1], gpus[0]))
                for source, target in hops:
                    self._charge_hop(load, intra, (source, target), plan.pattern, channel.bandwidth)
            if plan.nodes > 1:
                assert channel.nets is not None
                last = gpus[-1] if plan.pattern == "ring" else gpus[0]
                amount = channel.bandwidth * share
                inter.add(self.charge(load, f"net{channel.nets[0]}", gpus[0], amount))
                inter.add(self.charge(load, last, f"net{channel.nets[1]}", amount))
        return load, intra, inter

    def _charge_hop(
        self, load: Load, types: set[str], hop: tuple[str, str], pattern: str, bandwidth: float
    ) -> None:
        if pattern == "ring":
            types.add(self.charge(load, *hop, bandwidth))
        else:
            types.add(self.charge(load, *hop, bandwidth / 2))
            types.add(self.charge(load, hop[1], hop[0], bandwidth / 2))

    def _charge_head(self, load: Load, gpus: list[str], bandwidth: float) -> None:
        for index, gpu in enumerate(gpus):
            switches = [
                there for here, there in self.width if here == gpu and there.startswith("nvs")
            ]
            assert len(switches) == 1, f"{gpu} is on no NVSwitch"
            amount = bandwidth * (2 if index == 0 else 1)
            load[gpu, switches[0]] += amount
            load[switches[0], gpu] += amount

    def check(self, plan: topology.Plan) -> None:
        """Assert that the plan is legal."""
        every_gpu = list(range(len(self.machine.gpus)))
        assert plan.channels
        assert len(plan.channels) <= 64
        for channel in plan.channels:
            assert sorted(channel.order) == every_gpu, "every GPU once per channel"
            assert channel.bandwidth > 0
            assert (channel.nets is None) == (plan.nodes == 1)
            for net in channel.nets or ():
                assert self.nodes[f"net{net}"].usable
        load, intra, inter = self.load_of(plan)
        for link, amount in load.items():
            assert amount <= self.width[link] * (1 + 1e-6), f"{link} carries {amount}"
        assert abs(sum(channel.bandwidth for channel in plan.channels) - plan.bandwidth) < 1e-6
        assert plan.bandwidth <= plan.bound * (1 + 1e-6)
        if intra:
            assert plan.type_intra == max(intra, key=TYPES.index)
        if inter:
            assert plan.type_inter == max(inter, key=TYPES.index)
        self._check_pairs(plan)

    @staticmethod
    def _check_pairs(plan: topology.Plan) -> None:
        """A channel that crosses rails has one that crosses them back, as often."""
        crossing = collections.Counter(
            (channel.nets, round(channel.bandwidth, 6))
            for channel in plan.channels
            if channel.nets and channel.nets[0] != channel.nets[1]
        )
        for (nets, bandwidth), count in crossing.items():
            assert crossing[nets[::-1], bandwidth] == count

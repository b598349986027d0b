# SPDX-License-Identifier: Apache-2.0
"""Machines with something wrong: the right warning appears, and plans stay legal."""

from __future__ import annotations

import itertools
import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl import topology
from support.topology_judge import Judge

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"
MACHINES: list[tuple[str, dict[str, int]]] = [
    ("ndv4-topo.xml", {"sm": 80, "nvlinks": 12, "net_speed": 200000}),
    ("ndv5-topo.xml", {"sm": 90, "nvlinks": 18, "net_speed": 400000}),
    ("ncv4-topo.xml", {}),
    ("p4d-24xl-topo.xml", {"sm": 80, "nvlinks": 12, "net_speed": 100000}),
    ("H100-topology-kubernetes.xml", {}),
    ("panlichen_8x3090_topo.xml", {"p2p": 0}),
    ("dgx1v_cubemesh.xml", {}),
    ("dgx2_16xV100.xml", {}),
    ("gb200_nvl8_2trays.xml", {"mnnvl": 1}),
    ("h200x8_vm.xml", {}),
    ("h100_1gpu_1nic.xml", {}),
]
Element = ElementTree.Element


def parents(root: Element) -> list[tuple[Element, Element]]:
    return [(parent, child) for parent in root.iter() for child in parent]


def leads_somewhere(device: Element) -> bool:
    below = {element.tag for element in device.iter()}
    classes = [element.get("class", "") for element in device.iter("pci")]
    return bool(below & {"gpu", "net"}) or any(
        code.startswith(("0x02", "0x03")) for code in classes
    )


def choose(rng: random.Random, found: list) -> object | None:
    return rng.choice(found) if found else None


# Each changes the machine and names the warning that must appear; None where nothing can be known,
# and "" where the machine has no place for it.


def drop_nic(root: Element, rng: random.Random) -> str | None:
    nics = [
        (parent, child)
        for parent, child in parents(root)
        if child.tag == "nic" or (child.tag == "pci" and child.get("class", "").startswith("0x02"))
    ]
    if chosen := choose(rng, nics):
        chosen[0].remove(chosen[1])
    return None


def drop_gpu(root: Element, rng: random.Random) -> str | None:
    gpus = [
        (parent, child)
        for parent, child in parents(root)
        if child.tag == "pci" and child.get("class", "").startswith("0x03")
    ]
    if len(gpus) > 1 and (chosen := choose(rng, gpus)):
        chosen[0].remove(chosen[1])
    return None


def drop_nvlink(root: Element, rng: random.Random) -> str | None:
    links = [(parent, child) for parent, child in parents(root) if child.tag == "nvlink"]
    buses = {device.get("busid") for device in root.iter("pci") if device.find("gpu") is not None}
    chosen = choose(rng, links)
    if chosen is None:
        return ""
    gpu, link = chosen
    chosen[0].remove(link)
    target = link.get("target")
    own = next(device.get("busid") for device in root.iter("pci") if gpu in device)
    if target == own:
        return None  # a link to itself was nothing
    return "uneven_nvlink" if target in buses else "missing_nvlinks"


def set_on_device(attribute: str, value: str | None, warning: str) -> Callable[..., str]:
    def mutate(root: Element, rng: random.Random) -> str:
        devices = [device for device in root.iter("pci") if leads_somewhere(device)]
        device = choose(rng, devices)
        if device is None:
            return ""
        if value is None:
            device.attrib.pop(attribute, None)
        else:
            device.set(attribute, value)
        return warning

    return mutate


def slow_switch(root: Element, rng: random.Random) -> str:
    switches = [device for device in root.iter("pci") if device.find("pci") is not None]
    device = choose(rng, [switch for switch in switches if leads_somewhere(switch)])
    if device is None:
        return ""
    device.set("link_speed", "2.5 GT/s PCIe")
    device.set("link_width", "1")
    return "slow_switch_link"


def lose_numa(root: Element, rng: random.Random) -> str:
    rng.choice(root.findall("cpu")).set("numaid", "-1")
    return "unknown_numa"


def drop_sm(root: Element, rng: random.Random) -> str | None:
    devices = [device for device in root.iter("pci") if device.find("gpu") is not None]
    device = choose(rng, devices)
    if device is None:
        return ""
    device.find("gpu").attrib.pop("sm", None)
    return None if "device" in device.attrib else "unknown_sm"  # the device id tells it


def drop_net_speed(root: Element, rng: random.Random) -> str | None:
    net = choose(rng, list(root.iter("net")))
    if net is None:
        return ""
    net.attrib.pop("speed", None)
    return "unknown_net_speed"


def slow_port(root: Element, rng: random.Random) -> str | None:
    nets = list(root.iter("net"))
    if len(nets) < 3:
        return ""
    rng.choice(nets).set("speed", "1000")
    return "slow_nic"


def many_nics(root: Element, rng: random.Random) -> None:
    """32 ports, as a p5.48xlarge has."""
    devices = [device for device in root.iter("pci") if device.find("gpu") is not None]
    for index in range(32):
        nic = ElementTree.SubElement(rng.choice(devices or list(root.iter("cpu"))), "nic")
        ElementTree.SubElement(
            nic,
            "net",
            name=f"efa{index}",
            dev=str(100 + index),
            speed="100000",
            guid=hex(index + 1),
        )


def drop_some_attribute(root: Element, rng: random.Random) -> None:
    elements = [element for element in root.iter() if element is not root and element.attrib]
    element = rng.choice(elements)
    name = rng.choice(sorted(element.attrib))
    if name != "busid":
        del element.attrib[name]


MUTATIONS = [
    drop_nic,
    drop_gpu,
    drop_nvlink,
    slow_switch,
    lose_numa,
    drop_sm,
    drop_net_speed,
    slow_port,
    many_nics,
    drop_some_attribute,
    set_on_device("link_width", "0", "unknown_link_width"),
    set_on_device("link_width", "255", "unknown_link_width"),
    set_on_device("link_width", None, "unknown_link_width"),
    set_on_device("link_speed", "Unknown", "unknown_link_speed"),
    set_on_device("link_speed", "", "unknown_link_speed"),
    set_on_device("link_speed", None, "unknown_link_speed"),
]


def names(machine: topology.Topology) -> set[str]:
    return {warning.name for warning in machine.warnings}


def judge_plans(machine: topology.Topology, patterns: list[tuple[str, int]]) -> int:
    """Check the plans; give how many there were."""
    found = 0
    judge = Judge(machine)
    for pattern, nodes in patterns:
        try:
            plan = machine.search(pattern, nodes=nodes)
        except pccl.UnsupportedError as error:
            reason = str(error)
            assert pattern == "heads" or "no GPU" in reason or "no NIC" in reason or nodes > 1
            continue
        judge.check(plan)
        found += 1
    return found


CASES = list(itertools.product(["ring", "tree", "heads"], [1, 2]))


@pytest.mark.parametrize(("file", "assume"), MACHINES)
def test_plans_of_healthy_machines_are_legal(file: str, assume: dict[str, int]) -> None:
    machine = topology.load(DATA / file, assume=assume)
    assert judge_plans(machine, [*CASES, ("ring", 7), ("tree", 100)]) >= 4


def test_plans_of_a_rack_of_72_gpus_are_legal() -> None:
    machine = topology.load(DATA / "gb200_nvl72_18trays.xml", assume={"mnnvl": 1})
    assert judge_plans(machine, CASES) == 6


@pytest.mark.parametrize("mutation", range(len(MUTATIONS)))
@pytest.mark.parametrize(("file", "assume"), MACHINES)
def test_each_fault_has_its_warning(file: str, assume: dict[str, int], mutation: int) -> None:
    root = ElementTree.parse(DATA / file).getroot()
    expected = MUTATIONS[mutation](root, random.Random(f"{file}{mutation}"))
    assumed = {name: value for name, value in assume.items() if name in {"p2p", "mnnvl"}}
    if expected not in {"unknown_sm", "unknown_net_speed"}:
        assumed = assume
    machine = topology.parse(ElementTree.tostring(root, encoding="unicode"), assume=assumed)
    if expected:
        assert expected in names(machine)
    judge_plans(machine, CASES)


@pytest.mark.parametrize("hundred", range(10))
def test_plans_stay_legal_under_random_faults(hundred: int) -> None:
    searched = 0
    for case in range(100 * hundred, 100 * hundred + 100):
        rng = random.Random(case)
        file, assume = rng.choice(MACHINES)
        root = ElementTree.parse(DATA / file).getroot()
        for mutation in rng.choices(MUTATIONS, k=rng.randint(1, 4)):
            mutation(root, rng)
        text = ElementTree.tostring(root, encoding="unicode")
        try:
            machine = topology.parse(text, name=f"case {case}", assume=assume)
            searched += judge_plans(machine, rng.sample(CASES, 3))
        except AssertionError as error:
            raise AssertionError(f"case {case}, {file}: {error}") from error
        again = topology.parse(machine.to_xml(), assume=assume)
        assert again == machine, f"case {case}: saved and loaded"
    assert searched > 150

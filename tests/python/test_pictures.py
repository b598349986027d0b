# SPDX-License-Identifier: Apache-2.0
"""Pictures of machines, plans and jobs: their pixels, and where their letters are."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from pccl import topology
from support.drawn import Drawn

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"
P4D = {"sm": 80, "nvlinks": 12, "net_speed": 100_000}
POINTS = 72  # an inch

Subject: TypeAlias = topology.Topology | topology.Plan | topology.Job


@functools.cache
def machine(name: str) -> topology.Topology:
    if name == "here":
        return topology.detect()
    if name == "one_gpu":
        return topology.load(DATA / "h100_1gpu_1nic.xml")
    if name == "72_gpus":
        return topology.load(DATA / "gb200_nvl72_18trays.xml", assume={"mnnvl": 1})
    return topology.example(name, assume=P4D if name == "p4d" else None)


def job(name: str) -> topology.Job:
    p4d, here = machine("p4d"), machine("here")
    host = "node{}.some-rack.some-cluster.example.org"
    hosts = {
        "one_host": [("here", range(4), here)],
        "in_turns": [("a", range(0, 16, 2), p4d), ("b", range(1, 16, 2), p4d)],
        "uneven": [("a", range(1000), here), ("b", [1000], p4d)],
        "many_hosts": [(host.format(i), range(i, 1200, 12), p4d) for i in range(12)],
    }
    return topology.Job.of(hosts[name])


MACHINES = [*topology.examples(), "one_gpu", "72_gpus", "here"]
PLANS = [
    "dgx1v ring 1",
    "dgx1v ring 2",
    "dgx1v tree 1",
    "dgx1v tree 4",
    "dgx2 ring 1",
    "h200_vm ring 1",
    "h200_vm heads 1",
    "h200_vm heads 2",
    "l40s tree 2",
    "p4d ring 2",
    "one_gpu ring 1",
    "one_gpu tree 2",
    "72_gpus ring 1",
]
JOBS = ["one_host", "in_turns", "uneven", "many_hosts"]


def subject_of(name: str) -> Subject:
    if name in JOBS:
        return job(name)
    if name in MACHINES:
        return machine(name)
    of, pattern, nodes = name.split()
    return machine(of).search(pattern, nodes=int(nodes))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[*MACHINES, *PLANS, *JOBS])
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return Drawn(subject_of(request.param))


def test_it_shows_something_and_all_of_it_is_inside_the_frame(drawn: Drawn) -> None:
    drawn.check_ink()


def test_letters_are_inside_and_not_over_each_other(drawn: Drawn) -> None:
    drawn.check_letters()


def test_a_notebook_shows_it_at_its_size(drawn: Drawn) -> None:
    assert isinstance(drawn.subject, topology.Topology | topology.Plan | topology.Job)
    picture = drawn.subject._repr_svg_()
    assert picture is not None
    size = re.search(r'<svg [^>]*width="([0-9.]+)pt" height="([0-9.]+)pt"', picture)
    assert size is not None
    for shown, wanted in zip(size.groups(), drawn.figure.get_size_inches(), strict=True):
        assert 0.3 * wanted * POINTS < float(shown) < 1.1 * wanted * POINTS


@pytest.mark.parametrize("name", [name for name in PLANS if not name.startswith("one_gpu")])
def test_every_channel_is_drawn_in_its_colour(name: str) -> None:
    drawn = Drawn(subject_of(name))
    plan = drawn.subject
    assert isinstance(plan, topology.Plan)
    lines = drawn.axes.get_legend().get_lines()
    colours = [line.get_color() for line in lines if line.get_linestyle() == "-"]
    kinds = {(tuple(c.order), c.nets, round(c.bandwidth, 3)) for c in plan.channels}
    assert len(colours) == min(16, len(kinds))
    for colour in colours:
        near = np.abs(drawn.below_the_heading - 255 * np.array(colour[:3])).max(axis=2) < 60
        assert near.sum() > 20, colour


def test_gpus_and_hosts_are_named() -> None:
    output = {text for text, _ in Drawn(subject_of("dgx1v ring 2")).letters()}
    assert {str(gpu) for gpu in range(8)} <= output
    assert any("net0 in" in text for text in output)
    output = {text for text, _ in Drawn(subject_of("dgx1v")).letters()}
    assert {"gpu0", "gpu7", "nic3", "net3", "cpu1", "NVL 20 to 40"} <= output
    output = {text for text, _ in Drawn(subject_of("many_hosts")).letters()}
    assert any("12 hosts, 1200 ranks" in text and "4 hosts not shown" in text for text in output)

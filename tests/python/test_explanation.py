# SPDX-License-Identifier: Apache-2.0
"""What ``print(pccl.explain(...))`` shows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl import topology
from pccl.explanation import Explanation, Way

if TYPE_CHECKING:
    from pccl.explanation.choices import ChosenBy

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"

COSTS = "measured 2026-11-25T21:40:03Z, load 0.1"
BOARD = Way("shm_two_shot", "shm", 20e-6, "", is_chosen=True)


def lines_of(*ways: Way) -> list[str]:
    links = ("memory of one host: 10 GB/s, assumed",)
    return str(Explanation("all_reduce", 4096, 2, ways, links, (0, 1), 1, COSTS, ())).splitlines()


def test_the_choice_has_a_star_and_each_way_a_line() -> None:
    heading, link, costs, *ways = lines_of(BOARD, Way("ring", "links", 30e-6, "", is_chosen=False))
    assert heading == "all_reduce of 4096 bytes, 2 ranks"
    assert link.endswith("assumed")
    assert costs == f"  costs: {COSTS}"
    assert [way.split()[:3] for way in ways] == [
        ["*", "shm_two_shot", "shm"],
        ["ring", "links", "30.0"],
    ]


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("request", "PCCL_ALGORITHM, or the call, requests shm_two_shot"),
        ("capsule", "shm_two_shot was loaded for this size"),
        ("tuning", "pccl tune measured shm_two_shot as the fastest"),
        ("prediction", "the difference is too small to count on"),
    ],
)
def test_the_reason_of_a_slower_choice_is_shown(by: ChosenBy, reason: str) -> None:
    ring = Way("ring", "links", 10e-6, "", is_chosen=False)
    last = lines_of(BOARD._replace(chosen_by=by), ring)[-1]
    assert last == f"  (ring is predicted to be faster, but {reason})"


def test_the_fastest_way_needs_no_reason() -> None:
    ring = Way("ring", "links", 30e-6, "", is_chosen=False)
    assert "predicted to be faster" not in lines_of(BOARD, ring)[-1]


def job_of(hosts: int, ranks: int, name: str = "H100-topology-kubernetes.xml") -> topology.Job:
    node = topology.load(DATA / name)
    return topology.Job.of(
        [(f"node{i}", range(ranks * i, ranks * (i + 1)), node) for i in range(hosts)]
    )


def test_a_job_that_exists_nowhere_is_explained() -> None:
    job = job_of(hosts=8, ranks=8)
    explained = pccl.explain("all_reduce", 1 << 20, job)
    assert explained.ranks == 64
    assert list(explained.order) == job.order
    assert explained.lanes == job.lanes
    assert len(explained.links) == 8
    assert {"ring", "double_binary_tree", "pat"} <= {way.algorithm for way in explained.ways}
    assert all(way.over == "links" and way.seconds > 0 for way in explained.ways)
    assert explained.chosen.seconds == min(way.seconds for way in explained.ways)
    assert any("of node0" in way.busiest for way in explained.ways)
    assert str(explained).startswith("all_reduce of 1048576 bytes, 64 ranks\n")
    assert pccl.explain("all_reduce", 1 << 26, job).chosen.seconds > explained.chosen.seconds


def test_similar_hosts_and_consecutive_ranks_are_printed_together() -> None:
    links = (
        "eth0 of a: 25 GB/s, measured",
        "eth0 of b: 25 GB/s, measured",
        "eth0 of c: 10 GB/s, measured",
        "eth0 of d: 25 GB/s, measured",
    )
    order = (0, 4, 3, 2, 1, 5, 6, 7)
    output = str(Explanation("all_reduce", 4096, 8, (BOARD,), links, order, 1, COSTS, ()))
    assert output.splitlines()[1:5] == [
        "  counting on eth0 of a and 2 like it: 25 GB/s, measured",
        "  counting on eth0 of c: 10 GB/s, measured",
        f"  costs: {COSTS}",
        "  in the order 0 4 3 2 1 5-7",
    ]


def test_rings_follow_the_links_of_the_imagined_job() -> None:
    node = topology.load(DATA / "H100-topology-kubernetes.xml")
    mixed = topology.Job.of([("a", range(0, 16, 2), node), ("b", range(1, 16, 2), node)])
    order = pccl.explain("all_reduce", 1 << 20, mixed).order
    hosts = [rank % 2 for rank in order]
    assert sum(one != other for one, other in itertools.pairwise(hosts)) == 1


def test_an_imagined_host_has_a_segment() -> None:
    assert pccl.explain("all_reduce", 4096, job_of(hosts=1, ranks=8)).chosen.over == "shm"


def test_what_no_group_could_be_is_refused() -> None:
    node = topology.load(DATA / "H100-topology-kubernetes.xml")
    with pytest.raises(pccl.InvalidArgumentError, match="no host has rank 2"):
        pccl.explain("all_reduce", 1, topology.Job.of([("a", [0, 1], node), ("b", [3], node)]))
    with pytest.raises(pccl.InvalidArgumentError, match="'all_send' is no collective"):
        pccl.explain("all_send", 1, job_of(hosts=2, ranks=1))

# SPDX-License-Identifier: Apache-2.0
"""Capsules as MSCCL's XML, and back."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import pccl
import pccl.lang as pl
from pccl import schedule
from support import algorithms

if TYPE_CHECKING:
    from pathlib import Path

    from pccl.lang.geometry import Collective, Protocol

COLLECTIVES: tuple[Collective, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
)
BUILT_IN = [
    (collective, algorithm)
    for collective in COLLECTIVES
    for algorithm in schedule.algorithms(collective)
]


def imported(capsule: pccl.Capsule, folder: Path) -> pccl.Capsule:
    file = folder / "algo.xml"
    file.write_text(capsule.to_msccl())
    return pccl.Capsule.from_msccl(file)


def has_lists(capsule: pccl.Capsule) -> bool:
    """Whether a step handles several runs of chunks."""
    return any("], " in step.text for step in capsule.schedule.steps)


@pytest.mark.parametrize(("collective", "algorithm"), BUILT_IN)
def test_what_is_exported_is_proven_again(
    collective: Collective, algorithm: str, tmp_path: Path
) -> None:
    """Messages of several runs of chunks cannot be said; all else must come back."""
    capsule = pl.from_generator(algorithm, collective, 6)
    if has_lists(capsule):
        with pytest.raises(pccl.UnsupportedError, match=r"rank \d+ lane \d+ step \d+ .*one run"):
            capsule.to_msccl()
        return
    back = imported(capsule, tmp_path)
    assert (back.schedule.collective, back.schedule.ranks, back.schedule.chunks) == (
        collective,
        6,
        capsule.schedule.chunks,
    )
    assert back.manifest["sums"] == capsule.manifest["sums"]
    assert imported(back, tmp_path).manifest["sums"] == capsule.manifest["sums"]


@pytest.mark.parametrize(
    ("protocol", "proto"), [("ll", "LL"), ("ll128", "LL128"), ("direct", "Simple")]
)
def test_the_protocol_comes_back(protocol: Protocol, proto: str, tmp_path: Path) -> None:
    capsule = pl.from_generator("ring", "all_reduce", 4, protocol=protocol)
    assert ET.fromstring(capsule.to_msccl()).get("proto") == proto
    assert imported(capsule, tmp_path).protocol == protocol


def test_most_built_in_algorithms_can_be_written() -> None:
    capsules = [pl.from_generator(algorithm, kind, 6) for kind, algorithm in BUILT_IN]
    assert sum(has_lists(capsule) for capsule in capsules) < len(capsules) // 2


def test_thread_blocks_have_one_peer_each_way(tmp_path: Path) -> None:
    """A lane that sends to many and receives from many becomes many thread blocks."""
    capsule = algorithms.through_scratch.build("mine", ranks=4)
    root = ET.fromstring(capsule.to_msccl())
    assert root.attrib["coll"] == "allreduce"
    assert [gpu.attrib["s_chunks"] for gpu in root] == ["4", "0", "0", "0"]
    for gpu in root:
        connections = [
            (side, tb.attrib[side], tb.attrib["chan"])
            for tb in gpu
            for side in ("send", "recv")
            if tb.attrib[side] != "-1"
        ]
        assert len(set(connections)) == len(connections)
    assert imported(capsule, tmp_path).manifest["sums"] == capsule.manifest["sums"]


def test_sizes_and_root_are_kept(tmp_path: Path) -> None:
    capsule = algorithms.chain_broadcast.build("mine", ranks=4, sizes="1KB..64KB")
    back = imported(capsule, tmp_path)
    assert (back.sizes, back.schedule.root, back.name) == ("1KB..64KB", 1, "mine")

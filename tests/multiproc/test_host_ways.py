# SPDX-License-Identifier: Apache-2.0
"""Groups on several hosts time TCP between these, and choose by what they find."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from faults.network import why_no_namespaces
from support.ranks_on_hosts import run_on_hosts

if TYPE_CHECKING:
    from pathlib import Path

NO_NAMESPACES = why_no_namespaces()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or ""),
]

HOSTS = [0, 0, 1, 1]
MOST_GROUPS = 50
#: Rank 0's costs, so that only what is timed between hosts differs.
COSTS = "date 2026-11-27T08:00:00Z\nquiet 1\nbeat 0.1\ntcp_round 10\ntcp_message 3\ntcp_byte 0.3\n"


def _look(folder: Path, comm: pccl.Communicator) -> dict[str, Any]:
    groups = [comm]

    def explained() -> pccl.Explanation:
        return pccl.explain("all_reduce", 4 << 10, groups[-1])

    def meet_again() -> None:
        where = f"file://{folder}/store-{len(groups)}"
        groups.append(pccl.Communicator(rank=comm.rank, world_size=4, rendezvous=where, timeout=60))

    # On a busy machine the first ones may not have the time, or find what is not worth keeping.
    before = ""
    explanation = explained()
    while len(groups) < MOST_GROUPS and not (
        "takes" in before and before == explanation.costs_from
    ):
        before = explanation.costs_from
        meet_again()
        explanation = explained()
    return {
        "source": explanation.costs_from,
        "before": before,
        "shown": str(explanation),
        "chosen": explanation.chosen.algorithm,
        "ways": [(way.algorithm, way.seconds) for way in explanation.ways],
        "network": pccl.topology.job(groups[-1]).hosts[1].bandwidth,
    }


def _on_hosts(tmp_path: Path, name: str, mbit: int | None = None) -> dict[str, Any]:
    folder = tmp_path / name
    folder.mkdir()
    costs = folder / "costs.txt"
    costs.write_text(COSTS)
    ranks = run_on_hosts(
        functools.partial(_look, folder),
        HOSTS,
        folder,
        mbit,
        PCCL_COSTS_FILE=str(costs),
        XDG_CACHE_HOME=str(folder),
    )
    assert ranks[1:] == ranks[:-1], "all ranks count on the same"
    assert isinstance(ranks[0], dict), ranks[0]
    return ranks[0]


def _nanoseconds_a_byte(found: dict[str, Any]) -> float:
    named = re.search(
        r"; between hosts TCP takes [\d.]+ us and ([\d.]+) ns a byte, measured 20\S+Z to \S+$",
        found["source"],
    )
    assert named, found["source"]
    assert named[0] in found["shown"]
    return float(named[1])


def test_a_narrow_network_is_found_and_chosen_for(tmp_path: Path) -> None:
    wide = _on_hosts(tmp_path, "wide")
    narrow = _on_hosts(tmp_path, "narrow", mbit=100)
    for found in (wide, narrow):
        assert found["before"] == found["source"], "timed once, and kept"
        print(found["shown"])
    assert _nanoseconds_a_byte(wide) < 20
    # 100 Mbit/s are 80 ns a byte; the first 32 KiB of a stream pass at once.
    assert 40 < _nanoseconds_a_byte(narrow) < 160
    assert narrow["network"] == pytest.approx(1 / _nanoseconds_a_byte(narrow), rel=0.01)
    assert narrow["network"] < wide["network"]
    assert dict(narrow["ways"])["ring"] > 2 * dict(wide["ways"])["ring"]
    print(f"chosen: {wide['chosen']}, and over 100 Mbit/s {narrow['chosen']}")
    assert narrow["chosen"] != wide["chosen"]


def test_what_cannot_be_timed_counts_as_loopback(tmp_path: Path) -> None:
    # Of 1 Mbit/s a stream takes longer than anybody waits.
    found = _on_hosts(tmp_path, "slow", mbit=1)
    assert found["source"].endswith("; between hosts TCP as on loopback")

# SPDX-License-Identifier: Apache-2.0
"""Programs of people, as tests/data/capsules keeps them for the C++ tests: run this to write them.

Of ``pccl.lang``, of MSCCL's XML as two kinds of compilers write it, and of MSCCL++.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pccl.lang as pl
from support import algorithms, msccl_xml, mscclpp_plans, synthesised_xml

if TYPE_CHECKING:
    import pccl

FOLDER = Path(__file__).parents[1] / "data" / "capsules"


@pl.algorithm("all_gather")
def spread(c: pl.Program) -> None:
    for source in range(c.ranks):
        for rank in range(c.ranks):
            c.input(source).copy_to(rank)


def capsules() -> list[pccl.Capsule]:
    two_levels = pl.compose(
        inside=(algorithms.ring_reduce_scatter, spread), across=algorithms.ring, ranks_per_host=2
    )
    return [
        algorithms.all_pairs.build("all_pairs", ranks=3),
        algorithms.ring.build("ring_twice", ranks=3, instances=2),
        algorithms.doubling_all_gather.build("doubling", ranks=4),
        algorithms.relayed_all_to_all.build("relayed", ranks=4),
        algorithms.through_scratch.build("through_scratch", ranks=3),
        algorithms.two_rank_steps().build("steps"),
        two_levels.build("two_levels", ranks=4),
    ]


def files() -> dict[str, bytes]:
    xml = {
        "msccl_all_pairs": msccl_xml.all_pairs_all_reduce(3),
        "msccl_in_place": msccl_xml.ring_all_reduce(3, inplace=1),
        "searched_all_to_all": synthesised_xml.all_to_all_around(4),
        "searched_all_gather": synthesised_xml.all_gather_both_ways(3),
    }
    plans = {
        "plan_two_shot": mscclpp_plans.two_shot_all_reduce(3),
        "plan_barrier": mscclpp_plans.barrier_all_reduce(3),
    }
    return (
        {f"{capsule.name}.capsule": capsule.data for capsule in capsules()}
        | {f"{name}.xml": algo.xml().encode() for name, algo in xml.items()}
        | {f"{name}.json": plan.text().encode() for name, plan in plans.items()}
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)

# SPDX-License-Identifier: Apache-2.0
"""The plans that MSCCL++'s own sources write: imported, proven and right on CPU ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plan_sources import generate
from run_plans import imported, outcomes, run, table

if TYPE_CHECKING:
    from run_plans import Outcome

FOLDER = os.environ.get("PCCL_TEST_MSCCLPP", "")
WHY_NOT = (
    "PCCL_TEST_MSCCLPP names no folder with the sources of MSCCL++ (tests/real_plans/README.md)"
)

pytestmark = [pytest.mark.multiproc, pytest.mark.skipif(not FOLDER, reason=WHY_NOT)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """All plans of collectives, those of up to 8 ranks run."""
    folder = tmp_path_factory.mktemp("plans")
    made = outcomes(generate(Path(FOLDER), folder), folder, most_ranks=8)
    print(table(made))
    return made


def test_most_plans_are_imported_and_right(found: list[Outcome]) -> None:
    assert len(found) >= 115
    assert sum(each.capsule is not None for each in found) >= 90
    assert not [str(each) for each in found if each.is_right is False]


def test_all_plans_of_the_default_algorithms_are_imported(found: list[Outcome]) -> None:
    default = [each for each in found if each.plan.source.origin == "default_algos"]
    assert len(default) >= 30
    assert not [str(each) for each in default if each.capsule is None]


def test_no_plan_is_called_wrong_and_each_refusal_names_its_place(found: list[Outcome]) -> None:
    refused = [each for each in found if each.error is not None]
    assert not [str(each) for each in refused if not each.is_refused_well]
    assert not [str(each) for each in refused if not each.needs_multicast]


def test_the_plan_with_most_links_of_16_ranks_is_right(tmp_path: Path) -> None:
    """In one process its links would take more descriptors than most limits allow."""
    name = "allreduce_multi_nodes-16-8-group4"
    (plan,) = (each for each in generate(Path(FOLDER), tmp_path) if each.source.name == name)
    outcome = imported(plan)
    run(outcome, tmp_path)
    assert outcome.is_right

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own distributed_test suite on pccl: all of it at 3 ranks, the collectives at 2.

``run.py`` does the same at every world size, and checks the list of exceptions.
"""

from __future__ import annotations

import os

import pytest
import run
from batches import Batch, Outcome, run_batches

BACKEND = os.environ.get("PCCL_TEST_BACKEND", "pccl")
JOBS = 2
AT_TWO_RANKS = (
    "test_Backend_enum_class",
    "test_DistributedDataParallelCPU",
    "test_all_gather",
    "test_all_gather_coalesced_simple",
    "test_all_gather_object_default_pg",
    "test_all_reduce_coalesced_sum",
    "test_all_reduce_sum",
    "test_all_reduce_sum_complex",
    "test_all_to_all_single_unequal_split",
    "test_barrier",
    "test_broadcast",
    "test_gather",
    "test_irecv",
    "test_isend",
    "test_reduce_sum",
    "test_scatter",
    "test_send_recv",
    "test_send_recv_any_source",
    "test_send_recv_with_tag",
    "test_sparse_all_reduce_sum",
)

pytestmark = pytest.mark.upstream


def planned_tests() -> list[tuple[int, str]]:
    baseline, exceptions = run.load_baseline(), run.Exceptions.load(BACKEND)
    at_three = run.must_pass(baseline[3], exceptions)
    plan = [(3, name) for name in at_three] + [(2, name) for name in AT_TWO_RANKS]
    return [(size, name) for size, name in plan if name not in exceptions.excepted]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[int, dict[str, Outcome]]:
    """Run the selected tests in as few processes as possible."""
    selected = [
        item.callspec.params
        for item in request.session.items
        if getattr(item, "module", None) is request.module
    ]
    baseline = run.load_baseline()
    batches = []
    for size in sorted({params["world_size"] for params in selected}):
        names = [params["name"] for params in selected if params["world_size"] == size]
        seconds = {name: baseline[size][name].seconds for name in names}
        batches += Batch(BACKEND, size, names).split(JOBS, seconds)
    measured: dict[int, dict[str, Outcome]] = {}
    for batch, results in zip(batches, run_batches(batches, JOBS), strict=True):
        measured.setdefault(batch.world_size, {}).update(results)
    return measured


@pytest.mark.parametrize(("world_size", "name"), planned_tests())
def test_passes_as_on_gloo(
    outcomes: dict[int, dict[str, Outcome]], world_size: int, name: str
) -> None:
    outcome = outcomes[world_size][name]
    assert outcome.passed, f"{outcome.outcome}: {outcome.reason}"

# SPDX-License-Identifier: Apache-2.0
"""Some cells of the fault matrix, another choice each day; ``make faults`` runs them all."""

import datetime
import os

import pytest

from faults import network
from faults.cells import GIVES_UP, Cell, cells, subset
from faults.matrix import run_cells

# alone: survivors have seconds, and the cells take all cores by themselves.
pytestmark = [pytest.mark.multiproc, pytest.mark.alone]
SEED = int(os.environ.get("PCCL_TEST_FAULT_SEED", datetime.date.today().toordinal()))


def check(chosen: list[Cell]) -> None:
    complaints = [
        f"{report.cell}: {complaint}"
        for report in run_cells(chosen)
        for complaint in report.complaints
    ]
    assert not complaints, "\n".join([f"PCCL_TEST_FAULT_SEED={SEED}", *complaints])


def test_survivors_name_who_failed_in_time_and_leave_nothing_behind() -> None:
    reason = network.why_no_namespaces()
    if reason:
        print(f"links are not pulled: {reason}")
    breaking = [cell for cell in cells(SEED, reason is None) if cell.fault != GIVES_UP]
    check(subset(breaking, SEED, 36))


def test_who_gives_up_may_use_its_buffers_and_nobody_gets_wrong_data() -> None:
    giving_up = [cell for cell in cells(SEED, False) if cell.fault == GIVES_UP]
    check(subset(giving_up, SEED, 24))

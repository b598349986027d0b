"""Some cells of the fault matrix, another choice each day; ``make faults`` runs them all."""

import datetime
import os

import pytest

from faults import network
from faults.cells import subset
from faults.matrix import run_cells

pytestmark = pytest.mark.multiproc
CELLS = 36


def test_survivors_name_who_failed_in_time_and_leave_nothing_behind() -> None:
    reason = network.why_no_namespaces()
    if reason:
        print(f"links are not pulled: {reason}")
    seed = int(os.environ.get("PCCL_FAULT_SEED", datetime.date.today().toordinal()))
    complaints = [
        f"{report.cell}: {complaint}"
        for report in run_cells(subset(seed, reason is None, CELLS))
        for complaint in report.complaints
    ]
    assert not complaints, "\n".join([f"PCCL_FAULT_SEED={seed}", *complaints])

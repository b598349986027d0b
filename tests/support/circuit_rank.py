# SPDX-License-Identifier: Apache-2.0
"""A rank on a host of the test-bed of circuits: the case that the command line names.

python tests/support/circuit_rank.py halving|way_back
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import pccl
from pccl import published


def halving(comm: pccl.Communicator) -> dict[str, Any]:
    """Sum with circuits of their own for each step, a buffer that links do not hold at once."""
    operator = comm.load(published.switched_halving.build(ranks=comm.world_size))
    totals = []
    for elements in (10, 1 << 20):
        x = np.full(elements, comm.rank + 1, np.int64)
        operator.run(x)
        totals.append([int(x.min()), int(x.max())])
    phase = pccl.phases.current_phase()
    pccl.switch_phase("ring")  # circuits in pairs have no way for a barrier
    return {"totals": totals, "phase": phase}


def way_back(comm: pccl.Communicator) -> dict[str, Any]:
    """Lose the route back of a circuit, be refused, do as the error says, and go on."""
    pccl.switch_phase("ring")
    if comm.rank == 1:
        subprocess.run(["ip", "route", "delete", "10.77.0.1/32"], check=True)
    told = ""
    try:
        pccl.switch_phase("crossed")
    except pccl.UnavailableError as error:
        told = str(error)
    before = pccl.phases.current_phase()
    if comm.rank == 1 and (wanted := re.search(r"ip route replace [^:;]*", told)):
        subprocess.run(wanted[0].split(), check=True)
    pccl.switch_phase("crossed")
    x = np.ones(1000)
    comm.all_reduce(x)
    return {"told": told, "before": before, "total": float(x[0])}


CASES = {"halving": halving, "way_back": way_back}


def main() -> None:
    """Run the case, and write what rank 0 has found."""
    comm = pccl.Communicator(rendezvous="env://", timeout=120)
    found = CASES[sys.argv[1]](comm)
    if comm.rank == 0:
        Path(os.environ["RESULT"]).write_text(json.dumps(found) + "\n")
    comm.barrier()


if __name__ == "__main__":
    main()

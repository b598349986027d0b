# SPDX-License-Identifier: Apache-2.0
"""Whoever waits for others says so on stderr after 5 s: whom for, and where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from support.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

ALONE = """
import pccl, sys

rank, size, where, timeout = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
try:
    pccl.Communicator(rank=rank, world_size=size, rendezvous=where, timeout=timeout)
except pccl.Error as error:
    print(type(error).__name__)
"""
LATE = """
import sys
import time

import numpy as np
import pccl

rank = int(sys.argv[1])
comm = pccl.Communicator(rank=rank, world_size=3, rendezvous=sys.argv[2], timeout=60.0)
x = np.ones(1 << 20)
if rank == 2:
    time.sleep(12)
getattr(comm, sys.argv[3])(x) if sys.argv[3] != "recv" else (
    comm.send(x, 0) if rank == 2 else comm.recv(x, 2) if rank == 0 else None
)
comm.barrier()
"""


MANY = """
import sys
import threading

import pccl

def join(rank):
    try:
        pccl.Communicator(rank=rank, world_size=41, rendezvous=sys.argv[1], timeout=12)
    except pccl.Error:
        pass

threads = [threading.Thread(target=join, args=(rank,)) for rank in range(40)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def wait_alone(rank: int, size: int, where: str, timeout: float = 12.0) -> list[str]:
    """Give the lines of a rank whose peers never come."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(rank), str(size), where, str(timeout)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout != ""
    return done.stderr.splitlines()


def test_rank_0_names_the_missing_ranks() -> None:
    where = f"tcp://127.0.0.1:{free_port()}"
    (line,) = wait_alone(0, 3, where)
    assert re.search(
        rf"rank 0 of 3 has waited \d+ s at the store {where} for ranks 1, 2 to join", line
    )


def test_other_ranks_name_the_address_of_rank_0() -> None:
    where = f"tcp://127.0.0.1:{free_port()}"
    (line,) = wait_alone(1, 2, where)
    assert re.search(rf"has waited \d+ s for rank 0 to serve the store {where} \(", line)
    assert "refused" in line


def test_others_wait_for_the_file(tmp_path: Path) -> None:
    (line,) = wait_alone(1, 2, f"file://{tmp_path}/store")
    assert re.search(
        rf"rank 1 has waited \d+ s for rank 0 to make the store {tmp_path}/store", line
    )


def test_a_name_that_does_not_resolve_is_reported_at_once() -> None:
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE, "1", "2", "tcp://nosuchhost.invalid:29500", "30"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.kill()
    process.wait()
    assert 'cannot resolve "nosuchhost.invalid"' in line
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize(
    ("call", "named"), [("all_reduce", "all_reduce #1 (sum of 1048576 float64"), ("recv", "rank 2")]
)
def test_a_late_rank_is_named_once(tmp_path: Path, call: str, named: str, transports: str) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", LATE, str(rank), f"file://{tmp_path}/store", call],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PCCL_TRANSPORTS": transports},
        )
        for rank in range(3)
    ]
    output = [process.communicate(timeout=60)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0, 0]
    # On a busy machine ranks may have waited for each other to join, too.
    pattern = r"group world: rank 0 has waited \d+ s for .*rank.* in (?:all_reduce|messages)[^\n]*"
    (line,) = re.findall(pattern, output[0])
    assert named in line
    assert " in all_reduce" not in output[2]
    assert " in messages" not in output[2]


def test_some_of_many_ranks_report_the_awaited_rank(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY, f"file://{tmp_path}/store"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    output = re.findall(r"rank (\d+) of 41 has waited \d+ s at .* for rank 40 to join", done.stderr)
    assert 1 <= len(output) <= 16
    assert "0" in output

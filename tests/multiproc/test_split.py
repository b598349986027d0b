# SPDX-License-Identifier: Apache-2.0
"""Smaller groups out of one: ``Communicator.split``."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_ranks_of_a_color_are_a_group(tmp_path: Path, transports: str) -> None:
    def body(comm: pccl.Communicator) -> tuple[str, int, int, float]:
        part = comm.split(comm.rank % 2)
        assert part is not None
        x = np.full(1000, comm.rank + 1.0)
        part.all_reduce(x)
        part.barrier()
        return part.name, part.rank, part.world_size, float(x[0])

    found = run_threads(tmp_path, 5, body, transports=transports)
    assert found == [
        ("world/0", 0, 3, 1.0 + 3 + 5),
        ("world/1", 0, 2, 2.0 + 4),
        ("world/0", 1, 3, 9.0),
        ("world/1", 1, 2, 6.0),
        ("world/0", 2, 3, 9.0),
    ]


def test_keys_order_the_ranks_and_old_ranks_where_they_are_equal(tmp_path: Path) -> None:
    keys = [7, -1, 7, 0]

    def body(comm: pccl.Communicator) -> int:
        part = comm.split(3, keys[comm.rank])
        assert part is not None
        gathered = np.empty(4, np.int64)
        part.all_gather(gathered, np.array([comm.rank]))
        assert gathered.tolist() == [1, 3, 0, 2]
        part.barrier()
        return part.rank

    assert run_threads(tmp_path, 4, body) == [2, 0, 3, 1]


def test_who_has_no_color_is_in_no_group(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> int | None:
        part = comm.split(None if comm.rank == 0 else 1)
        return None if part is None else part.world_size

    assert run_threads(tmp_path, 3, body) == [None, 2, 2]


def test_the_old_group_goes_on_and_can_be_split_again(tmp_path: Path) -> None:
    """Also a part of it; and in the same way twice, which makes other groups."""

    def body(comm: pccl.Communicator) -> list[float]:
        groups = [comm]
        for parent in (comm, comm, comm.split(comm.rank // 2)):
            assert parent is not None
            part = parent.split(0)
            assert part is not None
            groups.append(part)
        sums = []
        for group in groups:
            x = np.array([float(comm.rank)])
            group.all_reduce(x)
            sums.append(float(x[0]))
        comm.barrier()
        return sums

    low, high = [6.0, 6.0, 6.0, 0.0 + 1], [6.0, 6.0, 6.0, 2.0 + 3]
    assert run_threads(tmp_path, 4, body) == [low, low, high, high]


def test_a_group_outlives_the_one_that_it_was_split_from(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> float:
        part = comm.split(0)
        assert part is not None
        comm.barrier()
        comm.shutdown()
        x = np.array([1.0])
        part.all_reduce(x)
        part.barrier()
        return float(x[0])

    def be_rank(comm: pccl.Communicator) -> float:
        inner = comm.split(0)
        assert inner is not None
        return body(inner)

    assert run_threads(tmp_path, 3, be_rank) == [3.0, 3.0, 3.0]


def test_one_rank_alone_splits() -> None:
    comm = pccl.Communicator()
    part = comm.split(4, key=2)
    assert part is not None
    assert (part.rank, part.world_size, part.name) == (0, 1, "world/4")
    assert comm.split(None) is None


def test_a_negative_color_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="color -1 of split; it must be 0 or more"):
        pccl.Communicator().split(-1)


def test_a_missing_rank_is_waited_for_until_the_timeout(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(pccl.TimeoutError):
                comm.split(0, timeout=0.3)

    with pytest.raises(pccl.Error):  # the barrier that follows: the group is over
        run_threads(tmp_path, 2, body)


PROCESS = """
import sys
import numpy as np
import pccl

comm = pccl.Communicator(rank=int(sys.argv[1]), world_size=3, rendezvous=sys.argv[2], timeout=60.0)
part = comm.split(comm.rank // 2, key=-comm.rank)
x = np.array([10.0 ** comm.rank])
part.all_reduce(x)
print(part.rank, x[0])
part.barrier()
comm.barrier()
"""


def test_processes_split_under_a_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), f"file://{tmp_path}/store"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PCCL_SECRET_FILE": str(secret)},
        )
        for rank in range(3)
    ]
    output = [rank.communicate(timeout=60)[0].split() for rank in ranks]
    assert output == [["1", "11.0"], ["0", "11.0"], ["0", "100.0"]]

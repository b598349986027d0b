# SPDX-License-Identifier: Apache-2.0
"""The launcher must report what happens to ranks: results, errors, deaths and hangs."""

import os
import threading

import pytest
import torch
import torch.distributed as dist

from support.launch import RankError, run_ranks

pytestmark = pytest.mark.multiproc


@pytest.fixture(scope="module", autouse=True)
def imports_are_done() -> None:
    """No test is about how long it takes until the first ranks start."""
    run_ranks(return_at_once, 1, backend=None)


def return_at_once(rank: int, world_size: int) -> None:
    pass


def sum_of_ranks(rank: int, world_size: int, factor: int) -> float:
    x = torch.tensor([float(rank * factor)])
    dist.all_reduce(x)
    return x.item()


def fail_on_rank_one(rank: int, world_size: int) -> None:
    if rank == 1:
        raise ValueError("rank one is unhappy")


def die_on_rank_one(rank: int, world_size: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), 9)


def hang_on_rank_one(rank: int, world_size: int) -> None:
    if rank == 1:
        threading.Event().wait()


def hang_at_exit(rank: int, world_size: int) -> None:
    threading.Thread(target=threading.Event().wait).start()


def test_returns_results_by_rank() -> None:
    assert run_ranks(sum_of_ranks, 3, arguments=(2,), backend="gloo") == [6.0, 6.0, 6.0]


def test_shows_the_traceback_of_a_rank() -> None:
    with pytest.raises(RankError, match=r"(?s)rank 1: .*fail_on_rank_one.*rank one is unhappy"):
        run_ranks(fail_on_rank_one, 2, backend=None)


def test_notices_a_rank_that_dies() -> None:
    with pytest.raises(RankError, match="1 of 2 ranks failed\n--- rank 1: ended with exit code -9"):
        run_ranks(die_on_rank_one, 2, backend=None)


def test_shows_where_a_rank_hangs() -> None:
    with pytest.raises(RankError, match=r"(?s)1 of 2 .*rank 1: did not return.*hang_on_rank_one"):
        run_ranks(hang_on_rank_one, 2, backend=None, timeout_s=0.1)


def test_notices_a_rank_that_does_not_end() -> None:
    with pytest.raises(RankError, match=r"(?s)1 of 1 .*rank 0: did not return.*_shutdown"):
        run_ranks(hang_at_exit, 1, backend=None, exit_s=5)

# SPDX-License-Identifier: Apache-2.0
"""How processes start and end: spawn, fork, torchrun, and exits that forget to clean up."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

from support.launch import BACKEND, die_with_parent, not_on_gloo, run_ranks

SPAWN_TIMEOUT_S = 300
SCRIPTS = Path(__file__).with_name("scripts_for_exit.py")
pytestmark = pytest.mark.multiproc


def all_reduce_from_file(rank: int, world_size: int, path: str, backend: str) -> None:
    die_with_parent()
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=world_size)
    value = torch.tensor([2.0**rank])
    dist.all_reduce(value)
    assert value.item() == 2.0**world_size - 1
    dist.destroy_process_group()


def start_and_join(method: str, world_size: int) -> list[int | None]:
    context = multiprocessing.get_context(method)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = (world_size, f"{scratch}/store", BACKEND)
        processes = [
            context.Process(target=all_reduce_from_file, args=(rank, *arguments))
            for rank in range(world_size)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return [process.exitcode for process in processes]


def forks_ranks(rank: int, world_size: int) -> None:
    """Fork from a process that has torch, and the backend's library, loaded."""
    assert start_and_join("fork", 2) == [0, 0]


def forks_after_use(rank: int, world_size: int) -> None:
    """A child that never touches the parent's group must neither hang nor disturb it."""
    dist.all_reduce(torch.ones(10))
    child = multiprocessing.get_context("fork").Process(target=torch.ones, args=(3,))
    child.start()
    child.join()
    assert child.exitcode == 0
    value = torch.ones(10)
    dist.all_reduce(value)
    assert value[0].item() == world_size


def torchrun(script: str, world_size: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={world_size}", str(SCRIPTS), script]
    environment = os.environ | {"PCCL_TEST_BACKEND": BACKEND}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def as_under_torchrun(script: str, world_size: int) -> list[subprocess.CompletedProcess[str]]:
    """Run the ranks with the environment that torchrun gives them, and its store outlives them."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "PCCL_TEST_BACKEND": BACKEND,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": str(world_size),
    }

    def run(rank: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(SCRIPTS), script],
            env=environment | {"RANK": str(rank)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    with ThreadPoolExecutor(world_size) as ranks:
        return list(ranks.map(run, range(world_size)))


def test_fork() -> None:
    run_ranks(forks_ranks, 1, backend=None)


@pytest.mark.parametrize("world_size", [2, 4])
def test_fork_after_use(world_size: int) -> None:
    run_ranks(forks_after_use, world_size)


def test_spawn(tmp_path: Path) -> None:
    arguments = (2, str(tmp_path / "store"), BACKEND)
    ranks = torch.multiprocessing.spawn(all_reduce_from_file, arguments, nprocs=2, join=False)
    deadline = time.monotonic() + SPAWN_TIMEOUT_S
    try:
        while not ranks.join(timeout=deadline - time.monotonic()):  # returns at every rank's end
            assert time.monotonic() < deadline, "spawned ranks hang"
    finally:
        for process in ranks.processes:
            process.kill()


ABORTS_ON_GLOO = not_on_gloo("aborts where a thread of its own needs Python at the end")


@pytest.mark.parametrize(
    "script",
    [
        "ends_without_destroying",
        pytest.param(
            "ends_with_work_in_flight", marks=not_on_gloo("aborts when a peer is gone first")
        ),
        pytest.param("ends_while_another_thread_drops_memory", marks=ABORTS_ON_GLOO),
        pytest.param("ends_while_a_callback_runs", marks=ABORTS_ON_GLOO),
        "ends_with_an_unwaited_functional_collective",
        "ends_with_a_live_thread_of_groups",
    ],
)
def test_exit_without_clean_up_succeeds(script: str) -> None:
    for done in as_under_torchrun(script, 2):
        assert done.returncode == 0, done.stderr
        assert "main returns" in done.stdout


def test_a_failing_rank_ends_the_job() -> None:
    done = torchrun("fails_between_collectives", 2)
    assert done.returncode == 1
    assert "rank 1 gives up" in done.stderr
    assert "main returns" not in done.stdout

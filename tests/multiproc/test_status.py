# SPDX-License-Identifier: Apache-2.0
"""``pccl status``: a job that hangs, asked from outside."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support import fake_verbs
from support.stopped import await_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.multiproc
PATIENCE_S = 60

# The last rank holds Python's lock, so that nothing of its Python runs any more.
NUMPY_JOB = """
import ctypes
import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://", timeout=120.0)
x = np.ones(4, dtype=np.float32)
comm.all_reduce(x)
if comm.rank == comm.world_size - 1:
    ctypes.PyDLL(None).sleep(120)
comm.all_reduce(np.ones(8))
"""
# More groups, and more ranks, than an answer has room for.
LARGE_JOB = """
import time
import pccl

world = pccl.Communicator(rendezvous="env://", timeout=120.0)
groups = [world.split(0, world.rank) for _ in range(24)]
for group in groups:
    group.barrier()
time.sleep(120)
"""
TORCH_JOB = """
import time
import torch
import torch.distributed as dist

dist.init_process_group("pccl")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1:
    time.sleep(120)
dist.barrier()
"""


@contextlib.contextmanager
def job(script: str, *launcher: str, folder: Path, **variables: str) -> Iterator[int]:
    """Run ranks until the block ends; gives the process that started them."""
    file = folder / "job.py"
    file.write_text(script)
    with subprocess.Popen(
        [sys.executable, "-m", *launcher, str(file)],
        env={**os.environ, **variables},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process.pid
        finally:
            process.terminate()  # whose ranks end with it
            process.wait(PATIENCE_S)


def status(
    target: int | str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", "status", str(target), *arguments],
        env={**os.environ, "COLUMNS": "80", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def queried_until(
    is_so: Callable[[dict[str, Any]], bool], target: int | str, **variables: str
) -> dict[str, Any]:
    """Ask again until the answers show what is expected."""
    last: object = None
    for _ in range(PATIENCE_S * 2):
        done = status(target, "--json", **variables)
        last = done.stderr
        if done.returncode == 0:
            last = answer = json.loads(done.stdout)
            if is_so(answer):
                assert isinstance(answer, dict)
                return answer
        time.sleep(0.5)
    raise AssertionError(last)


def seats(answer: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return what each rank of the one group says."""
    return {seat["rank"]: seat for process in answer["processes"] for seat in process["groups"]}


def waits_for(rank: int) -> Callable[[dict[str, Any]], bool]:
    def is_so(answer: dict[str, Any]) -> bool:
        return any(seat["awaited"] == [rank] for seat in seats(answer).values())

    return is_so


def all_but_wait_for(
    rank: int, size: int, operation: str = "all_reduce #2 "
) -> Callable[[dict[str, Any]], bool]:
    """Wait there: on a busy machine a rank may be late for what comes before that, too.

    And it may have been asked before its own call was over, the others after it.
    """

    def is_so(answer: dict[str, Any]) -> bool:
        output = seats(answer)
        if len(output) != size:
            return False
        awaited = output.pop(rank)
        return (awaited["operation"], bool(awaited["last"])) == ("", True) and all(
            seat["awaited"] == [rank] and seat["operation"].startswith(operation)
            for seat in output.values()
        )

    return is_so


def secret_in(folder: Path, name: str = "secret") -> str:
    file = folder / name
    file.touch(mode=0o600)
    file.write_bytes(os.urandom(32))
    return str(file)


def test_a_process_whose_python_hangs_is_found(tmp_path: Path) -> None:
    with job(NUMPY_JOB, "pccl", "run", "-n", "3", folder=tmp_path) as launcher:
        answer = queried_until(all_but_wait_for(2, size=3), launcher)
        done = status(launcher, "--timeout", "30")
    assert answer["unheard"] == []
    output = seats(answer)
    assert output[0]["operation"].startswith("all_reduce #2 (sum of 8 float64")
    assert output[2]["operation"] == ""
    assert output[2]["last"].startswith("all_reduce #1 (sum of 4 float32")
    assert 0 < output[0]["seconds"] < PATIENCE_S
    assert 0 < output[2]["seconds"] < PATIENCE_S
    (sentence,) = answer["explained"]
    assert re.match(
        r"Group world of 3 ranks: ranks 0, 1 are in all_reduce #2 \(.*\), for \d", sentence
    )
    assert "rank 2 has not called it: its last is all_reduce #1 (" in sentence
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\d ", line)]
    assert [(row[0], row[-1]) for row in rows] == [("0", "2"), ("1", "2"), ("2", "-")]
    assert [row[4:6] for row in rows] == [["all_reduce", "#2"]] * 2 + [["nothing", "since"]]


@pytest.mark.parametrize("transports", ["shm", "verbs"])
def test_a_rank_leads_to_the_others(tmp_path: Path, transports: str) -> None:
    environment = fake_verbs.ranks_over(transports, tmp_path / "fabric")
    # Without shared memory, a job answers those alone that have its secret.
    secret = {"PCCL_SECRET_FILE": secret_in(tmp_path)} if transports == "verbs" else {}
    with job(
        NUMPY_JOB, "pccl", "run", "-n", "2", folder=tmp_path, **environment, **secret
    ) as launcher:
        answer = queried_until(all_but_wait_for(1, size=2), launcher, **secret)
        for process in answer["processes"]:
            queried_until(all_but_wait_for(1, size=2), process["pid"], **secret)
            queried_until(all_but_wait_for(1, size=2), process["door"], **secret)


def test_no_group_and_no_rank_of_a_large_job_is_left_out(tmp_path: Path) -> None:
    ranks, groups = 9, 25

    def seats_of_all(found: dict[str, Any]) -> list[dict[str, Any]]:
        return [seat for process in found["processes"] for seat in process["groups"]]

    def every_barrier_is_over(found: dict[str, Any]) -> bool:
        barriers = [seat for seat in seats_of_all(found) if seat["group"] != "world"]
        over = [seat for seat in barriers if seat["last"].startswith("barrier #1")]
        return len(over) == len(barriers) == (groups - 1) * ranks

    with job(LARGE_JOB, "pccl", "run", "-n", str(ranks), folder=tmp_path) as launcher:
        answer = queried_until(every_barrier_is_over, launcher)
        first = answer["processes"][0]["pid"]
        again = queried_until(lambda found: len(found["processes"]) == ranks, first)
    for found in (answer, again):
        assert found["unheard"] == []
        assert every_barrier_is_over(found)
        seats = seats_of_all(found)
        assert len(seats) == groups * ranks
        assert len({seat["key"] for seat in seats}) == groups == len(found["explained"])
        assert len({(seat["key"], seat["rank"]) for seat in seats}) == groups * ranks


def test_one_that_is_stopped_is_named(tmp_path: Path) -> None:
    with job(NUMPY_JOB, "pccl", "run", "-n", "2", folder=tmp_path) as launcher:
        answer = queried_until(all_but_wait_for(1, size=2), launcher)
        (stopped,) = [p["pid"] for p in answer["processes"] if p["groups"][0]["rank"] == 1]
        requested = next(p["pid"] for p in answer["processes"] if p["pid"] != stopped)
        os.kill(stopped, signal.SIGSTOP)
        try:
            await_stopped(stopped)
            done = status(requested, "--timeout", "5")  # which the other one must not miss
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert done.returncode == 0
    assert f"rank 1 of group world (process {stopped} on" in done.stdout
    assert "does not answer: " in done.stdout


def test_torch_groups_answer(tmp_path: Path) -> None:
    launcher = ("torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    with job(TORCH_JOB, *launcher, folder=tmp_path) as agent:
        answer = queried_until(all_but_wait_for(1, size=2, operation="barrier #"), agent)
    assert "rank 1 has not called it: its last is all_reduce #" in answer["explained"][0]


def test_the_secret_of_the_job_is_required(tmp_path: Path) -> None:
    secret = secret_in(tmp_path)
    with job(
        NUMPY_JOB, "pccl", "run", "-n", "2", folder=tmp_path, PCCL_SECRET_FILE=secret
    ) as launcher:
        queried_until(waits_for(1), launcher, PCCL_SECRET_FILE=secret)
        for variables, hint in [
            ({}, "set PCCL_SECRET_FILE as the job does"),
            ({"PCCL_SECRET_FILE": secret_in(tmp_path, "other")}, "is PCCL_SECRET_FILE the job's?"),
        ]:
            done = status(launcher, "--timeout", "30", **variables)
            assert (done.returncode, done.stdout) == (2, "")
            (line,) = done.stderr.splitlines()
            assert "does not prove the secret" in line
            assert hint in line


@pytest.mark.parametrize("has_secret", [True, False])
def test_over_the_network_only_holders_of_the_secret_are_answered(
    has_secret: bool, tmp_path: Path
) -> None:
    secret = {"PCCL_SECRET_FILE": secret_in(tmp_path)} if has_secret else {}
    with job(
        NUMPY_JOB, "pccl", "run", "-n", "2", folder=tmp_path, PCCL_TRANSPORTS="tcp", **secret
    ) as launcher:
        if has_secret:
            answer = queried_until(waits_for(1), launcher, **secret)
            door = answer["processes"][0]["door"]
            assert re.fullmatch(r"[\d.]+:\d+", door)
            queried_until(all_but_wait_for(1, size=2), door, **secret)
            return
        for _ in range(PATIENCE_S * 2):
            done = status(launcher)
            if "does not prove the secret" in done.stderr:
                break
            time.sleep(0.5)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "A job without one answers its own user alone, on its own host, and only if" in line


def test_what_is_no_job_is_refused_in_one_line() -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        for target, reason in [
            (bystander.pid, "has a pccl group"),
            (1 << 22, "there is no process"),
            ("nobody", "neither a process id nor an address"),
            ("127.0.0.1:1", "127.0.0.1:1"),
        ]:
            done = status(target)
            assert (done.returncode, done.stdout) == (2, "")
            (line,) = done.stderr.splitlines()
            assert reason in line
        bystander.kill()

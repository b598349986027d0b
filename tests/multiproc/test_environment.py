# SPDX-License-Identifier: Apache-2.0
"""``rendezvous="env://"``: ranks that the environment describes, with torchrun and without."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.fake_pmi import environment
from support.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

RANK = """
import sys

import numpy as np
import pccl

if "torch" in sys.argv:
    import torch.distributed as dist

    dist.init_process_group("gloo")  # meets at the same address, as the user's program may
for name in ("world", "world", "other"):
    comm = pccl.Communicator(rendezvous="env://", name=name, timeout=60.0)
    x = np.full(1000, comm.rank + 1.0)
    comm.all_reduce(x)
    assert (x == comm.world_size * (comm.world_size + 1) / 2).all()
    print(f"rank {comm.rank} of {comm.world_size}", flush=True)
"""
RANKS = 2


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_ranks_join_by_the_environment(address: str) -> None:
    port = free_port()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(RANK=rank, WORLD_SIZE=RANKS, MASTER_ADDR=address, MASTER_PORT=port),
        )
        for rank in range(RANKS)
    ]
    for rank, process in enumerate(ranks):
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, f"rank {rank} of {RANKS}\n" * 3)


@pytest.mark.parametrize("beside", ["alone", "torch"])
def test_torchrun_has_them_meet_at_its_store(tmp_path: Path, beside: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(RANK)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)),
            *("--master-port", str(free_port()), script, beside),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    output = [f"rank {rank} of {RANKS}" for rank in range(RANKS)]  # perhaps in one line
    assert [done.stdout.count(line) for line in output] == [3] * RANKS


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({}, "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT is not set"),
        ({"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1"}, "MASTER_PORT is not set"),
        ({"RANK": "first"}, 'RANK is "first"; it must be a number'),
        (
            {"SLURM_PROCID": 1, "SLURM_STEP_NUM_TASKS": 2},
            "SLURM_PROCID is set: this is srun; "
            'use rendezvous="auto", or "env://" with RANK=$SLURM_PROCID, '
            "WORLD_SIZE=$SLURM_STEP_NUM_TASKS",
        ),
        ({"PMI_RANK": 0, "SLURM_PROCID": 0}, "PMI_RANK is set: this is mpiexec of MPICH"),
        (
            {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 70000},
            "MASTER_PORT is 70000; use 1 to 65535",
        ),
    ],
)
def test_wrong_settings_are_reported_at_once(variables: dict[str, object], complaint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RANK],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=environment(**variables),
    )
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith("pccl.errors.InvalidArgumentError: env://"), done.stderr
    assert complaint in last


LONELY = """
import sys

import pccl

comm = pccl.Communicator(**eval(sys.argv[1]))
print(f"rank {comm.rank} of {comm.world_size}")
"""


def make_lonely(place: str, **variables: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LONELY, place],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=environment(**variables),
    )


@pytest.mark.parametrize(
    ("variables", "launcher"),
    [
        ({"OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_RANK": 1}, "mpiexec of Open MPI"),
        ({"PMI_SIZE": 2, "PMI_RANK": 0}, "mpiexec of MPICH or Intel MPI"),
        ({"SLURM_STEP_NUM_TASKS": 4, "SLURM_PROCID": 3}, "srun"),
        # Open MPI in an allocation of Slurm.
        ({"OMPI_COMM_WORLD_SIZE": 2, "SLURM_STEP_NUM_TASKS": 2}, "mpiexec of Open MPI"),
    ],
)
def test_one_of_several_processes_of_a_launcher_is_not_alone(
    variables: dict[str, object], launcher: str
) -> None:
    done = make_lonely("dict(rendezvous=None)", **variables)
    assert done.returncode != 0, done.stdout
    last = done.stderr.splitlines()[-1]
    size, count = next(iter(variables.items()))
    assert f"{size}={count} is set: this is one of {count} processes of {launcher}" in last
    assert 'rendezvous="auto", or "env://" with RANK=$' in last
    assert "Communicator(rank=0, world_size=1)" in last


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        ("{}", {}),
        ("{}", {"PMI_SIZE": 1, "SLURM_STEP_NUM_TASKS": 1}),
        ("{}", {"PMI_SIZE": "many"}),
        ("dict(rendezvous=None)", {"OMPI_COMM_WORLD_SIZE": 2, "RANK": 1}),
        ("dict(rank=0, world_size=1)", {"OMPI_COMM_WORLD_SIZE": 2}),
        ("dict(rendezvous='none')", {"OMPI_COMM_WORLD_SIZE": 2}),
    ],
)
def test_a_single_process_is_a_group_of_one(place: str, variables: dict[str, object]) -> None:
    done = make_lonely(place, **variables)
    assert (done.returncode, done.stdout) == (0, "rank 0 of 1\n"), done.stderr

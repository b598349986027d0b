# SPDX-License-Identifier: Apache-2.0
"""Jobs of launchers: ``Communicator()`` and ``init_method="pccl://"`` without any argument."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl import _core
from support.fake_pmi import FakePmi, environment, start_ranks
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

pytestmark = pytest.mark.multiproc

RANKS = 3
PATIENCE_S = 120

SUM = """
import numpy as np, pccl
comm = pccl.Communicator(timeout=60)
x = np.full(1000, comm.rank + 1.0)
comm.all_reduce(x)
print(f"rank {comm.rank} of {comm.world_size}: {x[0]:g}")
"""
TORCH = """
import torch, torch.distributed as dist
for _ in range(2):
    dist.init_process_group("pccl", init_method="pccl://")
    x = torch.ones(1000) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    dist.destroy_process_group()
print(f"sum {x[0]:g}")
"""
SLURM = {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "PMI_JOBID": "7.0", "SLURM_STEP_NUM_TASKS": RANKS}


def results(ranks: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Wait for all ranks, and return what each has printed."""
    ended = [(*rank.communicate(timeout=PATIENCE_S), rank.returncode) for rank in ranks]
    assert [code for _, _, code in ended] == [0] * len(ranks), [err for _, err, _ in ended]
    return [out for out, _, _ in ended]


def start(
    script: str, variables: Callable[[int], Mapping[str, object]], ranks: int = RANKS
) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**variables(rank)),
        )
        for rank in range(ranks)
    ]


def sums(ranks: int = RANKS) -> list[str]:
    total = ranks * (ranks + 1) // 2
    return [f"rank {rank} of {ranks}: {total}\n" for rank in range(ranks)]


@pytest.mark.parametrize(
    "variables",
    [{"HYDI_CONTROL_FD": 7}, {"FLUX_JOB_ID": "f1", "FLUX_TASK_LOCAL_ID": 0}, SLURM],
    ids=["mpich", "flux", "pmi2"],
)
def test_two_jobs_at_once_meet_through_their_pmi_servers(variables: dict[str, object]) -> None:
    servers = [FakePmi(RANKS), FakePmi(RANKS)]
    jobs = [start_ranks(server, SUM, lambda _: variables) for server in servers]
    assert [results(job) for job in jobs] == [sums(), sums()]
    assert [server.finalized for server in servers] == [RANKS, RANKS]


def test_torch_meets_through_a_pmi_server_again_and_again() -> None:
    assert results(start_ranks(FakePmi(RANKS), TORCH, lambda _: {})) == ["sum 6\n"] * RANKS


def test_torch_uses_variables_of_torchrun_and_is_alone_without() -> None:
    assert results(start(TORCH, lambda _: {}, ranks=1)) == ["sum 1\n"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--master-port", str(free_port()), "--no-python", sys.executable, "-c", TORCH),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        # torchrun inside of a step of srun: the innermost counts.
        env=environment(**SLURM, SLURM_PROCID=0, SLURM_STEP_NUM_NODES=1),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum 3") == 2


@pytest.mark.parametrize("url", ["pccl://host:29500", "pccl://?rank=0&world_size=1"])
def test_torch_refuses_an_address_and_a_rank(url: str) -> None:
    script = (
        f"import torch.distributed as dist; dist.init_process_group('pccl', init_method='{url}')"
    )
    (rank,) = start(script, lambda _: {}, ranks=1)
    _, err = rank.communicate(timeout=PATIENCE_S)
    assert 'write "pccl://", without rank and world_size' in err


@pytest.mark.parametrize("secret", ["of the launcher", "of a file"])
def test_the_secret_of_the_store_is_the_jobs(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"0123456789abcdef")
    file.chmod(0o600)
    settings = {} if secret == "of the launcher" else {"PCCL_SECRET_FILE": file}
    assert results(start_ranks(FakePmi(RANKS), SUM, lambda _: settings)) == sums()


def step(job: int) -> Callable[[int], Mapping[str, object]]:
    """Return variables of a step of Slurm on one node."""
    place = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": 0, "SLURM_CLUSTER_NAME": f"test-{os.getpid()}"}
    size = {"SLURM_STEP_NUM_TASKS": RANKS, "SLURM_STEP_NUM_NODES": 1}
    return lambda rank: {**place, **size, "SLURM_PROCID": rank}


def test_steps_of_slurm_on_one_node_need_no_pmi() -> None:
    jobs = [start(SUM, step(job)) for job in (1, 2)]
    assert [results(job) for job in jobs] == [sums(), sums()]


ENDLESS = """
import os
import numpy as np, pccl
comm = pccl.Communicator(timeout=60)
comm.all_reduce(np.ones(10))
os.write(1, f"{os.getpid()}\\n".encode())  # at once: both ranks write to one pipe
while True:
    comm.all_reduce(np.ones(10))
"""
# Starts two ranks, and waits; it stands for a launcher that is killed.
STARTER = f"""
import os, subprocess, sys
for rank in range(2):
    place = {{"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2"}}
    subprocess.Popen([sys.executable, "-c", {ENDLESS!r}], env={{**os.environ, **place}})
sys.stdin.read()
"""


def test_ranks_end_with_the_process_that_started_them() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**step(5)(0)),
    )
    assert starter.stdout is not None
    ranks = [int(starter.stdout.readline()) for _ in range(2)]
    starter.kill()
    starter.wait(PATIENCE_S)
    assert starter.stdout.read() == ""  # both have closed it
    assert not any(Path(f"/proc/{rank}/fd/1").exists() for rank in ranks)


def test_one_step_may_run_one_program_after_the_other() -> None:
    script = (
        "import subprocess, sys\nfor _ in range(2):\n    subprocess.run([sys.executable, '-c', "
    )
    twice = f"{script}{SUM!r}], check=True)\n"
    assert results(start(twice, step(3))) == [line * 2 for line in sums()]


def pmix(folder: Path, **settings: object) -> Callable[[int], Mapping[str, object]]:
    """Return variables of ranks that use the fake libpmix; skip without it."""
    prefix = Path(_core.__file__).parents[2] / "fakes/pmix"
    if not (prefix / "lib/libpmix.so.2").exists():
        pytest.skip(f"{prefix} has no libpmix: this build has no tests")
    job = {"PMIX_NAMESPACE": "test@1", "PMIX_PREFIX": prefix}
    fake = {"FAKE_PMIX_FOLDER": folder, "FAKE_PMIX_SIZE": RANKS}
    return lambda rank: {**job, **fake, **settings, "PMIX_RANK": rank}


@pytest.mark.parametrize("size", [{}, {"OMPI_COMM_WORLD_SIZE": RANKS}])
def test_ranks_meet_through_pmix(tmp_path: Path, size: dict[str, object]) -> None:
    assert results(start(SUM, pmix(tmp_path, **size))) == sums()
    assert len(list(tmp_path.glob("finalized-*"))) == RANKS


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("init", "UnavailableError: the PMIx server of mpiexec of Open MPI (PMIX_NAMESPACE=test@1) "
         "refused PMIx_Init: status -25, UNREACHABLE"),
        ("no-value", "refused PMIx_Get: status -46, NOT-FOUND"),
        ("null", "has a value of pccl-rendezvous of type nothing instead of 3"),
        ("type", "has a value of pccl-rendezvous of type 1 instead of 3"),
        ("garbage", "has a value of pccl-rendezvous that is no text"),
        ("other-text", "has no addresses of rank 0, but a text of 5 characters"),
        ("hang-init", "TimeoutError: the PMIx server of mpiexec of Open MPI "
         "(PMIX_NAMESPACE=test@1) did not answer PMIx_Init in time"),
        ("hang-fence", "TimeoutError: not every rank of the job has come to this exchange in time "
         "(the PMIx server of mpiexec of Open MPI (PMIX_NAMESPACE=test@1) did not answer"),
    ],
)  # fmt: skip
def test_faults_of_pmix_have_named_errors(tmp_path: Path, fault: str, complaint: str) -> None:
    script = "import pccl\npccl.Communicator(timeout=2)"
    settings = {"FAKE_PMIX_FAULT": fault, "OMPI_COMM_WORLD_SIZE": RANKS}
    ranks = start(script, pmix(tmp_path, **settings))
    for rank in ranks:
        _, err = rank.communicate(timeout=PATIENCE_S)
        assert complaint in err.splitlines()[-1], err


def test_a_rank_that_never_starts_is_a_timeout() -> None:
    server = FakePmi(2)
    script = "import pccl\npccl.Communicator(timeout=2)"
    first, second = start_ranks(server, script, lambda rank: {} if rank == 0 else {"PATH": ""})
    second.kill()
    second.communicate(timeout=PATIENCE_S)
    _, err = first.communicate(timeout=PATIENCE_S)
    assert "TimeoutError: not every rank of the job has come to this exchange in time" in err


def test_the_debug_log_and_info_name_the_launcher() -> None:
    server = FakePmi(1)
    (rank,) = start_ranks(
        server, "import pccl; pccl.Communicator()", lambda _: {"PCCL_LOG_LEVEL": "debug"}
    )
    _, err = rank.communicate(timeout=PATIENCE_S)
    assert "rendezvous: a launcher, PMI-1 (PMI_FD=" in err
    done = subprocess.run(
        [sys.executable, "-m", "pccl", "info", "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env=environment(**step(4)(1)),
    )
    assert '"launcher": "srun (step 4.0): rank 1 of 3"' in done.stdout

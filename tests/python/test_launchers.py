# SPDX-License-Identifier: Apache-2.0
"""Detection of launchers by the variables that they set, and what is no launcher."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl.launchers import Detection, detect, torchrun
from pccl.launchers.meeting import resolve
from support.fake_pmi import OF_LAUNCHERS

if TYPE_CHECKING:
    from collections.abc import Callable

    Only = Callable[..., None]

TORCHRUN = {
    **{"RANK": 3, "WORLD_SIZE": 4, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": 29500},
    **{"LOCAL_RANK": 1, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": 1, "GROUP_WORLD_SIZE": 2},
    "TORCHELASTIC_RUN_ID": "none",
}
# As Debian's Slurm 22.05 sets them.
BATCH_SCRIPT = {
    **{"SLURM_JOB_ID": 11, "SLURM_PROCID": 0, "SLURM_LOCALID": 0, "SLURM_NODEID": 0},
    **{"SLURM_NTASKS": 4, "SLURM_NPROCS": 4, "SLURM_TASKS_PER_NODE": "4"},
}
STEP = {
    **{"SLURM_JOB_ID": 5, "SLURM_STEP_ID": 0, "SLURM_CLUSTER_NAME": "test"},
    **{"SLURM_PROCID": 3, "SLURM_LOCALID": 0, "SLURM_NODEID": 1, "SLURM_NTASKS": 4},
    **{"SLURM_STEP_NUM_TASKS": 4, "SLURM_STEP_NUM_NODES": 2, "SLURM_STEP_NODELIST": "n[0-1]"},
    "SLURM_STEP_TASKS_PER_NODE": "3,1",
}
# As Open MPI 5 sets them.
OPEN_MPI = {
    **{"OMPI_COMM_WORLD_RANK": 1, "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_RANK": 1},
    **{"OMPI_COMM_WORLD_LOCAL_SIZE": 2, "PRTE_LAUNCHED": 1},
}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Return a function that sets these variables, and removes those of all other launchers."""

    def change(**variables: object) -> None:
        for name in os.environ:
            if name.startswith(OF_LAUNCHERS):
                monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))

    return change


def test_a_process_without_a_launcher_is_one_rank(only: Only) -> None:
    only()
    assert detect() == Detection(None, ())
    assert resolve("auto", None, None) == (0, 1, None, "no launcher, one rank")


def test_torchrun_is_found_first(only: Only) -> None:
    only(**TORCHRUN, **STEP, **OPEN_MPI)
    assert str(detect()) == (
        "torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): rank 3 of 4, local rank 1 of 2"
    )
    assert resolve("auto", None, None)[:3] == (3, 4, "env://")


def test_numbers_of_torchrun_are_not_mixed_with_those_of_a_step(only: Only) -> None:
    only(**{**TORCHRUN, "MASTER_PORT": 0}, **{**STEP, "SLURM_STEP_NUM_NODES": 1})
    with pytest.raises(
        pccl.InvalidArgumentError, match=r"torchrun \(RANK, WORLD_SIZE\): rank 3 of"
    ):
        pccl.Communicator()


def test_a_virtual_local_rank_of_torchrun_is_seen_through(only: Only) -> None:
    only(**{**TORCHRUN, "LOCAL_RANK": 0})
    launcher = torchrun.find([])
    assert launcher is not None
    assert (launcher.local_rank, launcher.local_size) == (1, 2)


@pytest.mark.parametrize(
    ("variables", "local_rank"),
    [
        ({**TORCHRUN, "RANK": 2, "LOCAL_RANK": 0}, 0),
        # Hosts of different sizes: nothing shows whether LOCAL_RANK is virtual.
        ({**TORCHRUN, "WORLD_SIZE": 5, "LOCAL_RANK": 0}, 0),
    ],
)
def test_a_true_local_rank_0_stays(
    only: Only, variables: dict[str, object], local_rank: int
) -> None:
    only(**variables)
    launcher = torchrun.find([])
    assert launcher is not None
    assert launcher.local_rank == local_rank


@pytest.mark.parametrize("job", [BATCH_SCRIPT, {"SLURM_JOB_ID": 12, "SLURM_NTASKS": 4}])
def test_a_batch_script_and_a_shell_of_salloc_are_no_steps(
    only: Only, job: dict[str, object]
) -> None:
    only(**job)
    rank, size, rendezvous, how = resolve("auto", None, None)
    assert (rank, size, rendezvous) == (0, 1, None)
    assert how.endswith("SLURM_JOB_ID is set without a step: this is no process of srun")


def test_a_step_on_several_nodes_without_pmi_says_what_to_type(only: Only) -> None:
    only(**STEP)
    with pytest.raises(pccl.InvalidArgumentError) as caught:
        pccl.Communicator()
    assert str(caught.value) == (
        "this is one of several processes, and there is no way to the others: srun (step 5.0): "
        "rank 3 of 4, local rank 0 of 1; start it with srun --mpi=pmi2 or --mpi=pmix, or set "
        "MASTER_ADDR and MASTER_PORT, the address and a free port of the first host, or pass "
        'Communicator(rendezvous="none") for one alone'
    )


def test_an_address_is_enough_where_a_launcher_has_no_store(only: Only) -> None:
    only(**STEP, MASTER_ADDR="fd00::1", MASTER_PORT=29500)
    launcher = detect().require_meeting()
    assert launcher is not None
    assert launcher.meeting == "tcp://[fd00::1]:29500"


@pytest.mark.parametrize(
    ("per_node", "node", "size"),
    [("2(x3),1", 2, 2), ("2(x3),1", 3, 1), ("4", 0, 4), ("4", 1, None), ("many", 0, None)],
)
def test_tasks_of_a_node_are_counted(
    only: Only, per_node: str, node: int, size: int | None
) -> None:
    only(**{**STEP, "SLURM_STEP_TASKS_PER_NODE": per_node, "SLURM_NODEID": node})
    launcher = detect().launcher
    assert launcher is not None
    assert launcher.local_size == size


def test_numbers_of_pmi_without_a_server_are_reported(only: Only) -> None:
    only(PMI_RANK=1, PMI_SIZE=4)
    with pytest.raises(pccl.InvalidArgumentError) as caught:
        pccl.Communicator()
    assert "PMI_RANK=1 and PMI_SIZE=4 are set without PMI_FD or PMI_PORT" in str(caught.value)


def test_a_closed_descriptor_belongs_to_a_launcher_farther_out(only: Only) -> None:
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    ours.close()
    theirs.close()
    # mpiexec of Open MPI inside of srun --mpi=pmi2: the innermost counts.
    only(PMI_FD=number, PMI_RANK=0, PMI_SIZE=1, **OPEN_MPI, PMIX_NAMESPACE="prterun-vm-1@1")
    found = detect()
    assert found.launcher is not None
    assert (found.launcher.rank, found.launcher.size) == (1, 2)
    assert f"PMI_FD={number} is no open socket of this process" in found.notes[0]


def test_open_mpi_inside_of_a_step_of_slurm_counts_its_own_ranks(only: Only) -> None:
    only(**STEP, **OPEN_MPI)
    launcher = detect().launcher
    assert launcher is not None
    assert (launcher.name, launcher.rank, launcher.size) == ("mpiexec of Open MPI", 1, 2)


def test_open_mpi_on_several_hosts_without_pmix_names_the_library(only: Only) -> None:
    only(**{**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": 1})
    with pytest.raises(pccl.InvalidArgumentError, match=r"install libpmix \(Debian: libpmix2\)"):
        pccl.Communicator()


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"RANK": 1}, "RANK=1 without WORLD_SIZE, MASTER_ADDR, MASTER_PORT"),
        (
            {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "10.0.0.1"},
            "the environment (RANK, WORLD_SIZE): rank 0 of 2; set MASTER_ADDR, and MASTER_PORT",
        ),
        ({"WORLD_SIZE": 2}, "WORLD_SIZE without RANK, MASTER_ADDR and MASTER_PORT"),
        ({**TORCHRUN, "RANK": 4}, "RANK=4, WORLD_SIZE=4, "),
        ({"SLURM_STEP_NUM_TASKS": 2}, "SLURM_STEP_NUM_TASKS=2 without SLURM_PROCID (srun)"),
    ],
)
def test_what_is_found_and_what_is_missing_is_listed(
    only: Only, variables: dict[str, object], complaint: str
) -> None:
    only(**variables)
    with pytest.raises(pccl.InvalidArgumentError) as caught:
        pccl.Communicator()
    assert complaint in str(caught.value)
    assert 'Communicator(rendezvous="none")' in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [{"rank": 0, "world_size": 1}, {"rendezvous": "none"}, {"world_size": 1}],
)
def test_a_caller_may_stay_alone(only: Only, arguments: dict[str, object]) -> None:
    only(**OPEN_MPI)
    with pccl.Communicator(**arguments) as comm:
        assert (comm.rank, comm.world_size) == (0, 1)


def test_arguments_that_contradict_the_launcher_are_refused(only: Only) -> None:
    only(**OPEN_MPI, PMIX_NAMESPACE="prterun-vm-1@1")
    with pytest.raises(pccl.InvalidArgumentError) as caught:
        pccl.Communicator(rank=0, world_size=2)
    assert str(caught.value).startswith("rank=0 and world_size=2 differ from those of mpiexec")


POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": 2}
TRAINER = {"PET_NNODES": 2, "PET_NODE_RANK": 1, "PET_NPROC_PER_NODE": 1}


def test_a_pod_of_an_indexed_job_finds_index_0_by_its_host_name(
    only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(**POD, WORLD_SIZE=4, MASTER_PORT=29500)
    monkeypatch.setattr(socket, "getfqdn", lambda: "train-workers-0-2.train.ns.svc.cluster.local")
    launcher = detect().require_meeting()
    assert launcher is not None
    assert (launcher.rank, launcher.size) == (2, 4)
    assert launcher.meeting == "tcp://train-workers-0-0.train.ns.svc.cluster.local:29500"


@pytest.mark.parametrize("name", ["localhost", "train-workers-0-3.train"])
def test_a_pod_without_a_stable_name_needs_an_address(
    only: Only, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    only(**POD, WORLD_SIZE=4, MASTER_PORT=29500)
    monkeypatch.setattr(socket, "getfqdn", lambda: name)
    with pytest.raises(pccl.InvalidArgumentError, match="MASTER_ADDR to the host name of index 0"):
        pccl.Communicator()


def test_an_indexed_job_of_independent_pods_has_one_rank_each(only: Only) -> None:
    only(**POD)
    assert resolve("auto", None, None)[:3] == (0, 1, None)
    assert "JOB_COMPLETION_INDEX=2 is set without a WORLD_SIZE above it" in str(detect())


def test_kubeflow_trainer_with_one_process_in_each_pod_is_found(only: Only) -> None:
    only(**TRAINER, PET_MASTER_ADDR="train-node-0-0.train", PET_MASTER_PORT=29500)
    launcher = detect().require_meeting()
    assert launcher is not None
    assert (launcher.rank, launcher.size) == (1, 2)
    assert launcher.meeting == "tcp://train-node-0-0.train:29500"


def test_kubeflow_trainer_with_several_processes_needs_torchrun(only: Only) -> None:
    only(**{**TRAINER, "PET_NPROC_PER_NODE": 4})
    with pytest.raises(pccl.InvalidArgumentError, match="start the script with torchrun, because"):
        pccl.Communicator()

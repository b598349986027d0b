# SPDX-License-Identifier: Apache-2.0
"""What a process group of torch tells the job of its GPUs, with a torch.cuda that is made up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

import pccl
from pccl.torch import registration
from support.launch import new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no topology")]

DATA = Path(__file__).parent.parent / "data" / "topology" / "nccl"
MACHINE = DATA / "dgx1v_cubemesh.xml"


def pretend_cuda(patch: pytest.MonkeyPatch, buses: list[int], current: int) -> None:
    def properties(device: int | torch.device) -> SimpleNamespace:
        index = device if isinstance(device, int) else device.index
        return SimpleNamespace(pci_domain_id=0, pci_bus_id=buses[index], pci_device_id=0)

    patch.setattr(torch.cuda, "is_initialized", lambda: True)
    patch.setattr(torch.cuda, "current_device", lambda: current)
    patch.setattr(torch.cuda, "get_device_properties", properties)


def meet(rank: int, world_size: int) -> None:
    dist.init_process_group("pccl", store=new_store(), rank=rank, world_size=world_size)


def ranks_by_gpu() -> dict[str, int]:
    (host,) = pccl.topology.job().hosts
    return {gpu.label: gpu.rank for gpu in host.topology.gpus if gpu.rank >= 0}


def gpus_are_shown(rank: int, world_size: int, labels: list[str]) -> None:
    buses = [int(label.split(":")[1], 16) for label in labels]
    with pytest.MonkeyPatch.context() as patch:
        pretend_cuda(patch, buses, current=rank)
        meet(rank, world_size)
        assert ranks_by_gpu() == {labels[0]: 0, labels[1]: 1}
        # Of further groups torch knows the device, and the current one says nothing. It would use
        # that device at once if it made one here.
        dist.group.WORLD.bound_device_id = torch.device("cuda", 5)
        assert registration._gpu_in_use() == labels[5]


def cuda_is_left_alone(rank: int, world_size: int) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this would initialise CUDA")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("init", "current_device", "get_device_properties"):
            patch.setattr(torch.cuda, name, refuse)
        meet(rank, world_size)
        assert not torch.cuda.is_initialized()
    assert not any(warning.name == "shared_gpu" for warning in pccl.topology.job().warnings)


def test_the_gpu_of_each_rank_is_shown() -> None:
    labels = [gpu.label for gpu in pccl.topology.load(MACHINE).gpus]
    run_ranks(
        gpus_are_shown,
        2,
        backend=None,
        arguments=(labels,),
        environment={"PCCL_TOPO_FILE": str(MACHINE)},
    )


def test_a_group_of_cpus_does_not_initialise_cuda() -> None:
    run_ranks(cuda_is_left_alone, 2, backend=None)

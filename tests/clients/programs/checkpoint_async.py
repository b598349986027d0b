# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint saves in the background while an FSDP2 model trains on."""

from __future__ import annotations

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from report import report
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

os.environ.setdefault("DCP_USE_PREFIX_STORE", "1")  # else its process listens at a guessed port
backend, executor = sys.argv[1], AsyncCheckpointerType(sys.argv[3])


def main() -> None:
    dist.init_process_group(backend)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    saving = dist.new_group()  # of the thread that saves: the other groups are in use meanwhile
    mesh = init_device_mesh("cpu", (world_size,))
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(16, 61), torch.nn.ReLU(), torch.nn.Linear(61, 1))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    samples = torch.Generator().manual_seed(100 + rank)

    def step() -> float:
        source = torch.randn(8, 16, generator=samples)
        loss = torch.nn.functional.mse_loss(model(source), source.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        return float(total) / world_size

    losses = [step() for _ in range(3)]
    folders = [tempfile.mkdtemp() if rank == 0 else ""]
    dist.broadcast_object_list(folders)
    weights, moments = get_state_dict(model, optimizer)
    saved = dcp.async_save(
        {"model": weights, "optimizer": moments},
        checkpoint_id=folders[0],
        async_checkpointer_type=executor,
        process_group=saving,
    )
    state = samples.get_state()
    losses += [step() for _ in range(3)]
    saved.result()
    weights, moments = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folders[0])
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    samples.set_state(state)
    again = [step() for _ in range(3)]
    assert again == losses[-3:], (again, losses)
    report(rank, world_size, dist.get_backend(mesh.get_group()), losses)
    dist.destroy_process_group()


if __name__ == "__main__":  # the executor starts a process that imports this file
    main()

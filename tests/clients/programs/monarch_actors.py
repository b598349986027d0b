# SPDX-License-Identifier: Apache-2.0
"""Monarch's actors, a process each, train by DDP; the script has no launcher."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from monarch.actor import Actor, current_rank, endpoint, this_host
from monarch.spmd import setup_torch_elastic_env
from report import found, show


class Trainer(Actor):
    """A rank of the training."""

    @endpoint
    def train(self, backend: str) -> dict[str, Any]:
        dist.init_process_group(backend)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        assert rank == current_rank().rank
        torch.manual_seed(3)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        samples = torch.Generator().manual_seed(100 + rank)
        losses = []
        for _ in range(5):
            source = torch.randn(8, 16, generator=samples)
            loss = torch.nn.functional.mse_loss(model(source), source.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        result = found(
            rank, world_size, dist.get_backend(), [*losses, *model.module.weight.detach().flatten()]
        )
        dist.destroy_process_group()
        return result


def main() -> None:
    backend, world_size = sys.argv[1], int(sys.argv[2])
    processes = this_host().spawn_procs(per_host={"ranks": world_size})
    setup_torch_elastic_env(processes)
    trainers = processes.spawn("trainers", Trainer)
    for _, result in trainers.train.call(backend).get(timeout=120):
        show(result)
    processes.stop().get(timeout=60)


if __name__ == "__main__":
    main()

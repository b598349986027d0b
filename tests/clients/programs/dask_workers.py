# SPDX-License-Identifier: Apache-2.0
"""A rank in each worker of a Dask cluster trains by DDP; the task sets the rendezvous."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from dask.distributed import Client, LocalCluster


def train(rank: int, world_size: int, port: int, backend: str) -> dict[str, Any]:
    import torch
    import torch.distributed as dist
    from report import found

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group(backend)
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
    weights = model.module.weight.detach().flatten()
    result = found(rank, dist.get_world_size(), dist.get_backend(), [*losses, *weights])
    dist.destroy_process_group()
    return result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    from report import show

    backend, world_size = sys.argv[1], int(sys.argv[2])
    with (
        LocalCluster(
            n_workers=world_size, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(world_size, timeout=120)
        workers = list(client.scheduler_info()["workers"])
        for _ in range(2):  # the second round finds processes that had a group before
            port = free_port()
            tasks = [
                client.submit(train, rank, world_size, port, backend, workers=[worker], pure=False)
                for rank, worker in enumerate(workers)
            ]
            results = client.gather(tasks)
    for result in results:
        show(result)


if __name__ == "__main__":
    main()

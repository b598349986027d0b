# SPDX-License-Identifier: Apache-2.0
"""ray.util.collective among actors: every function, on torch's tensors and numpy's arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import ray
import torch
from ray.util import collective
from ray.util.collective.types import ReduceOp
from report import found, show


@ray.remote(num_cpus=0)
class Actor:
    """A rank of the group."""

    def join(self, world_size: int, rank: int, backend: str) -> None:
        self.place = world_size, rank
        collective.init_collective_group(world_size, rank, backend, "actors")

    def work(self) -> dict[str, Any]:
        world_size, rank = self.place
        values: list[float] = []
        for make in (torch.tensor, np.array):
            x = make([rank + 1.0, rank * 2.0])
            for op in (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX):
                y = x + 0
                collective.allreduce(y, "actors", op)
                values += y.tolist()
            collective.reduce(y := x + 0, 1, "actors")
            values += y.tolist()
            collective.broadcast(y := x + 0, 1, "actors")
            values += y.tolist()
            parts = [make([0.0, 0.0]) for _ in range(world_size)]
            collective.allgather(parts, x, "actors")
            values += [value for part in parts for value in part.tolist()]
            parts = [x * (place + 1) for place in range(world_size)]
            collective.reducescatter(y := x + 0, parts, "actors")
            values += y.tolist()
            # A ring of messages.
            after, before = (rank + 1) % world_size, (rank - 1) % world_size
            y = x + 0
            if rank % 2 == 0:
                collective.send(x, after, "actors")
                collective.recv(y, before, "actors")
            else:
                collective.recv(y, before, "actors")
                collective.send(x, after, "actors")
            values += y.tolist()
        collective.barrier("actors")
        name = collective.get_group_handle("actors").backend()
        result = found(rank, collective.get_collective_group_size("actors"), name.lower(), values)
        collective.destroy_collective_group("actors")
        return result


def main() -> None:
    backend, world_size = sys.argv[1], int(sys.argv[2])
    hook = {"worker_process_setup_hook": "pccl.ray.register"} if backend == "pccl" else {}
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=hook)
    actors = [Actor.remote() for _ in range(world_size)]
    for _ in range(2):  # the second group has the name of the first
        ray.get([a.join.remote(world_size, rank, backend) for rank, a in enumerate(actors)])
        results = ray.get([actor.work.remote() for actor in actors], timeout=120)
    for result in results:
        show(result)
    ray.shutdown()


if __name__ == "__main__":
    main()

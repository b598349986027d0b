# SPDX-License-Identifier: Apache-2.0
"""Print the GPU memory that process groups take: the first, and each further one.

    python benchmarks/gpu_memory.py [--ranks 2] [--groups 4]

What the driver says is free, before and after a group's first all_reduce, all_to_all and message;
on pccl and on NCCL, in processes of their own. MiB on rank 0's GPU.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from common import gpu_ranks


def use(group: Any, rank: int, ranks: int) -> None:
    x = torch.ones(1 << 20, device="cuda")
    y = torch.empty_like(x)
    dist.all_reduce(x, group=group)
    dist.all_to_all_single(y, x, group=group)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    both = [dist.P2POp(dist.isend, x, after, group), dist.P2POp(dist.irecv, y, before, group)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    torch.cuda.synchronize()


def free_bytes(store: Any, ranks: int, step: int) -> int:
    """Look when no rank is busy."""
    store.add(f"ready{step}", 1)
    while store.add(f"ready{step}", 0) < ranks:
        time.sleep(0.005)
    time.sleep(0.2)
    return torch.cuda.mem_get_info()[0]


def run_rank(rank: int, backend: str, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    torch.ones(1 << 22, device="cuda")  # the context, and room for the tensors
    torch.cuda.synchronize()
    free = [free_bytes(store, options.ranks, 0)]
    dist.init_process_group(
        backend, store=dist.PrefixStore(backend, store), rank=rank, world_size=options.ranks
    )
    groups = [dist.group.WORLD]
    for step in range(options.groups):
        if step > 0:
            groups.append(dist.new_group(list(range(options.ranks)), backend=backend))
        use(groups[-1], rank, options.ranks)
        free.append(free_bytes(store, options.ranks, step + 1))
    if rank == 0:
        results.put([before - after for before, after in itertools.pairwise(free)])
    dist.barrier()
    dist.destroy_process_group()


def measure(backend: str, options: argparse.Namespace) -> list[int]:
    results = gpu_ranks.run(run_rank, backend, options, timeout=90)
    return [] if results is None else results.get()


def main() -> int:
    """Measure both and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--groups", type=int, default=4)
    options = parser.parse_args()
    taken = {backend: measure(backend, options) for backend in ("pccl", "nccl")}
    for backend, each in taken.items():
        sizes = ", ".join(f"{nbytes / 2**20:.0f}" for nbytes in each)
        print(f"memory n{options.ranks} {backend}: MiB of each group in turn: {sizes}", flush=True)
    return 0 if all(taken.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

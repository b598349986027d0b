# SPDX-License-Identifier: Apache-2.0
"""Time calls of GPUs without peer access: kernels in host memory beside the CPU's transports.

    python benchmarks/gpu_host.py [--gpus 1] [--ranks 2] [--sizes 1024 1048576 67108864]
                                  [--rounds 3] [--builds OLD NEW] [--max-blocks 8 16]
                                  [--nccl] [--json PATH]

Each rank is a process with torch's backend "pccl" and ``PCCL_GPU_PEER_ACCESS=0``. The ways take
turns, each time in new processes: ``staging`` (``PCCL_GPU_HOST_KERNELS=0``) and ``kernels``. With
``--builds``, which are what PYTHONPATH has for each, the builds take turns instead, each as it
chooses. Each number of ``--max-blocks`` is one more way, with kernels of so many blocks at most.
``--nccl`` is one more: torch's backend "nccl" with ``NCCL_P2P_DISABLE=1``, on as many GPUs as
ranks. On one GPU, start MPS before (``nvidia-cuda-mps-control -d``): without it the kernels of the
ranks take turns. Times are medians over calls of the slowest rank, by the host's clock, from the
call until the GPU has finished it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable

COLLECTIVES = ("all_reduce", "all_gather", "broadcast", "all_to_all", "send_recv")
SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26)
AS_RANK = "--as-rank"
MAX_BLOCKS = "BENCHMARK_MAX_BLOCKS"  # of a rank, in its environment
BACKEND = "BENCHMARK_BACKEND"
LONGEST_S = 300.0

Found = dict[str, float]  # microseconds by "all_reduce 1024"


def send_around(sent: torch.Tensor, got: torch.Tensor) -> None:
    """Send to the next rank and receive from the one before."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    operations = [
        dist.P2POp(dist.isend, sent, (rank + 1) % ranks),
        dist.P2POp(dist.irecv, got, (rank - 1) % ranks),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def call_of(collective: str, nbytes: int, ranks: int) -> Callable[[], object]:
    """Return the call on new tensors; ``nbytes`` are those of the largest one."""
    whole = torch.ones(nbytes // 4, device="cuda")
    other = torch.empty_like(whole)
    part = torch.ones(nbytes // 4 // ranks, device="cuda")
    calls: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(whole, dist.ReduceOp.MAX),
        "all_gather": lambda: dist.all_gather_into_tensor(other, part),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
        "send_recv": lambda: send_around(whole, other),
    }
    return calls[collective]


def time_of(call: Callable[[], object], nbytes: int) -> float:
    """Return the median microseconds of a call on this rank."""
    calls = 200 if nbytes <= 1 << 20 else 20
    times = []
    for index in range(calls + calls // 4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        if index >= calls // 4:
            times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def be_rank(rank: int, ranks: int, gpus: int, port: int, sizes: list[int]) -> None:
    """Measure all cells as one rank; rank 0 prints the slowest rank's times."""
    torch.cuda.set_device(rank % gpus)
    meeting = f"tcp://127.0.0.1:{port}"
    most = os.environ.get(MAX_BLOCKS)
    options = pccl.Options(max_blocks=int(most)) if most else None
    backend = os.environ.get(BACKEND, "pccl")
    dist.init_process_group(
        backend, init_method=meeting, rank=rank, world_size=ranks, pg_options=options
    )
    found: Found = {}
    for collective in COLLECTIVES:
        for nbytes in sizes:
            call = call_of(collective, nbytes, ranks)
            us = torch.tensor(time_of(call, nbytes), device="cuda", dtype=torch.float64)
            dist.all_reduce(us, dist.ReduceOp.MAX)
            found[f"{collective} {nbytes}"] = us.item()
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def run_way(settings: dict[str, str], options: argparse.Namespace, port: int) -> Found:
    """Run all ranks with these settings and return what rank 0 prints."""
    environment = os.environ | {"PCCL_GPU_PEER_ACCESS": "0"} | settings
    shape = [str(options.ranks), str(options.gpus), str(port), *map(str, options.sizes)]
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, AS_RANK, str(rank), *shape],
            env=environment,
            stdout=subprocess.PIPE if rank == 0 else None,
        )
        for rank in range(options.ranks)
    ]
    printed, _ = ranks[0].communicate(timeout=LONGEST_S)
    for rank in ranks:
        if rank.wait(timeout=LONGEST_S) != 0:
            raise SystemExit(f"a rank ended with {rank.returncode}")
    found: Found = json.loads(printed.splitlines()[-1])
    return found


def ways_of(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the settings of both ways, the former one first."""
    if options.builds:
        old, new = options.builds
        return {"old": {"PYTHONPATH": str(old)}, "new": {"PYTHONPATH": str(new)}}
    bounded = {f"kernels of {most}": {MAX_BLOCKS: str(most)} for most in options.max_blocks}
    nccl = {"nccl": {BACKEND: "nccl", "NCCL_P2P_DISABLE": "1"}} if options.nccl else {}
    return {"staging": {"PCCL_GPU_HOST_KERNELS": "0"}, "kernels": {}} | bounded | nccl


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def main() -> int:
    """Measure both ways in turns and print."""
    if sys.argv[1:2] == [AS_RANK]:
        rank, ranks, gpus, port, *sizes = map(int, sys.argv[2:])
        be_rank(rank, ranks, gpus, port, sizes)
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--builds", type=Path, nargs=2)
    parser.add_argument("--max-blocks", type=int, nargs="+", default=[])
    parser.add_argument("--nccl", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ways = ways_of(options)
    runs: list[dict[str, Any]] = [
        {name: run_way(settings, options, free_port()) for name, settings in ways.items()}
        for _ in range(options.rounds)
    ]
    former, *others = ways
    cells = []
    for what in runs[0][former]:
        us = {name: statistics.median(run[name][what] for run in runs) for name in ways}
        ratios = {name: us[former] / us[name] for name in others}
        shown = [f"{name} {us[name]:.1f} us, {ratio:.2f}x" for name, ratio in ratios.items()]
        print(f"{what}: {former} {us[former]:.1f} us; {'; '.join(shown)}", flush=True)
        cells.append({"what": what, "us": us, "ratios": ratios})
    if options.json:
        device = torch.cuda.get_device_name()
        options.json.write_text(json.dumps({"device": device, "cells": cells}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

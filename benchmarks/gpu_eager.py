# SPDX-License-Identifier: Apache-2.0
"""Time dist.all_reduce from Python, without a graph, on pccl and on NCCL.

    python benchmarks/gpu_eager.py [--ranks 4] [--sizes 1K 64K] [--calls 500]

The host's time for a call that returns at once, and the time a call takes when so many are made in
a row that the GPU or the host is never idle. Then the same for each of as many calls, with an event
behind every one: the median, the slowest of a hundred and the slowest, on the host (issue) and on
the GPU (from event to event). bfloat16; the slowest rank counts.
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

from pccl import _core
from pccl.bench import bytes_of


def raw_issue(rank: int, ranks: int, store: Any, x: torch.Tensor) -> float:
    """Return microseconds to issue the same below torch: what torch and the backend do not take."""
    group = _core.DeviceGroup(
        rank=rank,
        world_size=ranks,
        rendezvous=dist.PrefixStore(f"raw{x.nbytes}", store),
        device=rank,
        timeout=30.0,
    )
    stream = torch.cuda.current_stream().cuda_stream
    at, count = x.data_ptr(), x.numel()
    began = 0.0
    for call in range(40):
        if call == 20:
            torch.cuda.synchronize()
            began = time.perf_counter()
        group.launch(
            "all_reduce", input=at, output=at, count=count, dtype="bfloat16", stream=stream
        )
    taken = (time.perf_counter() - began) / 20 * 1e6
    torch.cuda.synchronize()
    store.add(f"through{x.nbytes}", 1)
    while store.add(f"through{x.nbytes}", 0) < ranks:
        time.sleep(0.001)
    return taken


def spread(x: torch.Tensor, calls: int) -> tuple[float, ...]:
    """Return median, 99th percentile and maximum, in microseconds, on the host and on the GPU."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    issued = []
    events[0].record()
    for event in events[1:]:
        began = time.perf_counter()
        dist.all_reduce(x)
        issued.append((time.perf_counter() - began) * 1e6)
        event.record()
    torch.cuda.synchronize()
    gaps = [1000 * a.elapsed_time(b) for a, b in itertools.pairwise(events)]
    return tuple(
        sorted(times)[min(calls - 1, int(calls * part))]
        for times in (issued, gaps)
        for part in (0.5, 0.99, 1)
    )


def run_rank(rank: int, backend: str, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group(
        backend, store=dist.PrefixStore(backend, store), rank=rank, world_size=options.ranks
    )
    found = {}
    for nbytes in options.sizes:
        x = torch.zeros(nbytes // 2, device="cuda", dtype=torch.bfloat16)
        for _ in range(50):
            dist.all_reduce(x)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(20):
            dist.all_reduce(x)
        issued = (time.perf_counter() - began) / 20
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(options.calls):
            dist.all_reduce(x)
        torch.cuda.synchronize()
        found[nbytes] = (issued * 1e6, (time.perf_counter() - began) / options.calls * 1e6)
        found[nbytes] += spread(x, options.calls)
        if backend == "pccl":
            found[nbytes] += (raw_issue(rank, options.ranks, store, x),)
    results.put(found)
    dist.barrier()
    dist.destroy_process_group()


def measure(backend: str, options: argparse.Namespace) -> dict[int, tuple[float, ...]]:
    results = gpu_ranks.run(run_rank, backend, options, timeout=120)
    if results is None:
        return {}
    found = [results.get() for _ in range(options.ranks)]
    return {
        nbytes: tuple(max(times) for times in zip(*(each[nbytes] for each in found), strict=True))
        for nbytes in found[0]
    }


def main() -> int:
    """Measure both and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    sizes = [1 << 10, 16 << 10, 64 << 10, 512 << 10]
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=sizes)
    parser.add_argument("--calls", type=int, default=500)
    options = parser.parse_args()
    found = {backend: measure(backend, options) for backend in ("pccl", "nccl")}
    for backend, times in found.items():
        for nbytes, (issued, taken, *more) in times.items():
            on_host, on_gpu, raw = more[:3], more[3:6], more[6:]
            print(f"eager all_reduce n{options.ranks} {nbytes} {backend}: ", end="")
            below = "".join(f", {each:.1f} us to issue below torch" for each in raw)
            print(f"{issued:.1f} us to issue{below}, {taken:.1f} us a call", end="")
            for place, (middle, high, most) in (("issue", on_host), ("GPU", on_gpu)):
                print(f"; {place} p50 {middle:.1f} p99 {high:.1f} max {most:.1f}", end="")
            print(flush=True)
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

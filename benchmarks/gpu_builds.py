# SPDX-License-Identifier: Apache-2.0
"""Time the small collectives of two builds of pccl against each other, on one GPU or two.

    python benchmarks/gpu_builds.py OLD NEW [--sizes 512 4096 32768] [--rounds 3] [--gpus 2]
                                            [--json PATH]

OLD and NEW are what PYTHONPATH has for each build (``build/gpu/python``). Two ranks live in one
process, as two streams whose kernels run side by side: so a change of a kernel shows on a machine
that has no two GPUs. Collectives that map each other's tensors do not, which a process cannot do
with its own: sizes are those that go by LL. Builds take turns, each time in a new process. CUDA
graphs of 50 calls, bfloat16, the median over replays, then over turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = 2
CALLS = 50
REPLAYS = 60
WARM_UP = 10
COLLECTIVES = {"all_reduce": 1, "all_gather": RANKS}  # blocks of the output
AS_BUILD = "--as-build"

Found = dict[str, float]  # microseconds by "all_reduce 4096"


def make_groups(gpus: int) -> list[Any]:
    from pccl import _core

    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    groups: list[Any] = [None] * RANKS

    def make(rank: int) -> None:
        store = dist.TCPStore("127.0.0.1", server.port, is_master=False)
        groups[rank] = _core.DeviceGroup(
            rank=rank,
            world_size=RANKS,
            rendezvous=store,
            device=rank % gpus,
            timeout=20.0,
            name=f"rank {rank}",
        )

    meeting = [threading.Thread(target=make, args=(rank,)) for rank in range(RANKS)]
    for thread in meeting:
        thread.start()
    for thread in meeting:
        thread.join()
    return groups


def capture(call: Callable[[], None], stream: Any) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(stream.device), torch.cuda.graph(graph, stream=stream):
        for _ in range(CALLS):
            call()
    return graph


def finish(streams: list[Any]) -> None:
    for stream in streams:
        stream.synchronize()


def replay(graphs: list[Any], streams: list[Any]) -> float:
    """Return the microseconds of one call, by the clock of the rank that starts last."""
    events = []
    finish(streams)
    for graph, stream in zip(graphs, streams, strict=True):
        with torch.cuda.stream(stream):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            graph.replay()
            events[1].record()
    finish(streams)
    return 1000 * events[0].elapsed_time(events[1]) / CALLS


def measure(groups: list[Any], gpus: int, collective: str, nbytes: int) -> float:
    streams = [torch.cuda.Stream(device=rank % gpus) for rank in range(len(groups))]
    count = nbytes // 2
    calls, tensors = [], []
    for group, stream in zip(groups, streams, strict=True):
        x = torch.randn(count, device=stream.device, dtype=torch.bfloat16)
        y = torch.empty(count * COLLECTIVES[collective], device=x.device, dtype=torch.bfloat16)
        tensors += [x, y]
        into = {"input": x.data_ptr(), "output": y.data_ptr(), "stream": stream.cuda_stream}
        calls.append(partial(group.launch, collective, count=count, dtype="bfloat16", **into))
        torch.cuda.synchronize(stream.device)
    for call, stream in zip(calls, streams, strict=True):
        with torch.cuda.device(stream.device):
            call()
    finish(streams)
    graphs = [capture(call, stream) for call, stream in zip(calls, streams, strict=True)]
    times = [replay(graphs, streams) for _ in range(WARM_UP + REPLAYS)]
    return statistics.median(times[WARM_UP:])


def be_build(gpus: int, sizes: list[int]) -> Found:
    torch.cuda.set_device(0)
    groups = make_groups(gpus)
    return {
        f"{collective} {nbytes}": measure(groups, gpus, collective, nbytes)
        for collective in COLLECTIVES
        for nbytes in sizes
    }


def run_build(path: Path, gpus: int, sizes: list[int]) -> Found:
    command = [sys.executable, __file__, AS_BUILD, str(gpus), *map(str, sizes)]
    environment = os.environ | {"PYTHONPATH": str(path)}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=120)
    found: Found = json.loads(ran.stdout)
    return found


def main() -> int:
    """Measure both builds and print."""
    if sys.argv[1:2] == [AS_BUILD]:
        gpus, *sizes = map(int, sys.argv[2:])
        print(json.dumps(be_build(gpus, sizes)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 4096, 16384, 32768])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gpus", type=int, choices=[1, 2], default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    builds = {"old": options.old, "new": options.new}
    runs = [
        {name: run_build(path, options.gpus, options.sizes) for name, path in builds.items()}
        for _ in range(options.rounds)
    ]
    cells = []
    for what in runs[0]["old"]:
        turns = [{name: run[name][what] for name in builds} for run in runs]
        us = {name: statistics.median(turn[name] for turn in turns) for name in builds}
        ratio = us["old"] / us["new"]
        print(f"{what}: old {us['old']:.2f} us, new {us['new']:.2f} us, {ratio:.3f} times faster")
        cells.append({"what": what, "ratio": ratio, **us, "runs": turns})
    if options.json:
        device = torch.cuda.get_device_name()
        options.json.write_text(json.dumps({"device": device, "cells": cells}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

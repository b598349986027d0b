# SPDX-License-Identifier: Apache-2.0
"""Time builds of pccl against each other on CPUs: did a change cost anything?

    python benchmarks/cpu_builds.py OLD NEW... [--case "numpy tcp"]... [--rounds 7] [--json PATH]

OLD and NEW are what PYTHONPATH has for each build (``build/dev/python``); give one build twice to
see what the machine's noise is. Builds take turns, in reversed order every second time, each with
two new processes, bound to a core each; a turn gives the median over blocks of calls that follow
one another, the table medians over turns, and ratios to OLD. Two hardware threads of one core
disturb each other: choose others with ``taskset`` where the first two are such.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = 2
AS_RANK = "--as-rank"
LIMIT_S = 120
BLOCKS = 40
# What is measured: bytes of an all_reduce of random float32, or of a read of the peer's memory, and how
# many calls make a block. "named" passes the operator and the timeout by name.
CASES = {
    "numpy shm": (1 << 10, 1000),
    "named shm": (1 << 10, 1000),
    "torch shm": (1 << 10, 300),
    "numpy tcp": (64 << 10, 30),
    "p2p shm": (8, 1000),
    "p2p tcp": (8, 100),
}

Found = dict[str, float]  # microseconds by case


def numpy_call(
    rank: int, folder: str, x: Any, transports: str, named: bool
) -> Callable[[], object]:
    import pccl

    group = pccl.Communicator(
        rank=rank,
        world_size=RANKS,
        rendezvous=f"file://{folder}/{transports}-{named}",
        transports=transports,
    )
    if named:
        return lambda: group.all_reduce(x, op="max", timeout=60.0)
    return lambda: group.all_reduce(x, "max")


def torch_call(rank: int, folder: str, x: Any) -> Callable[[], object]:
    import torch
    import torch.distributed as dist

    url = f"file://{folder}/torch"
    dist.init_process_group("pccl", init_method=url, rank=rank, world_size=RANKS)
    tensor = torch.from_numpy(x)
    return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX)


def exchange(rank: int, path: Path, mine: bytes) -> bytes:
    """Return what the other rank has put beside ``path``."""
    mine_path, peer_path = path.with_suffix(f".{rank}"), path.with_suffix(f".{1 - rank}")
    unfinished = mine_path.with_suffix(".part" + mine_path.suffix)
    unfinished.write_bytes(mine)
    unfinished.rename(mine_path)
    deadline = time.monotonic() + LIMIT_S
    while not peer_path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"rank {1 - rank} did not come to {path.name}")
        time.sleep(0.001)
    return peer_path.read_bytes()


def p2p_call(rank: int, folder: str, x: Any, transport: str) -> Callable[[], object]:
    from pccl.p2p import Session

    session = Session(f"rank{rank}", listen="127.0.0.1", transports=transport)
    memory, target = session.allocate(x.nbytes), session.allocate(x.nbytes)
    memory.array()[:] = x.view(np.uint8)
    session.publish("x", memory)
    session.load(exchange(rank, Path(folder) / f"info-{transport}", session.connection_info()))
    remote = session.fetch(f"rank{1 - rank}", "x", LIMIT_S)

    def call() -> None:
        session.read(target, remote).wait()

    return call


def make_call(case: str, rank: int, folder: str) -> Callable[[], object]:
    x = np.random.default_rng(rank).standard_normal(CASES[case][0] // 4).astype(np.float32)
    surface, transport = case.split()
    if surface == "torch":
        return torch_call(rank, folder, x)
    if surface == "p2p":
        return p2p_call(rank, folder, x, transport)
    return numpy_call(rank, folder, x, transport, surface == "named")


def measure(case: str, call: Callable[[], object]) -> float:
    calls = CASES[case][1]
    times = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times[BLOCKS // 4 :]) * 1e6


def be_rank(rank: int, folder: str, cases: list[str]) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    calls = {case: make_call(case, rank, folder) for case in cases}  # a peer uses them to the end
    found = {}
    for case in cases:
        exchange(rank, Path(folder) / case.replace(" ", "-"), b"")
        found[case] = measure(case, calls[case])
    exchange(rank, Path(folder) / "end", b"")
    print(json.dumps(found))


def run_build(path: Path, cases: list[str]) -> Found:
    """Return the slower rank's times."""
    environment = os.environ | {"PYTHONPATH": str(path.resolve()), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="pccl-bench-") as folder:
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, AS_RANK, str(rank), folder, *cases],
                env=environment,
                stdout=subprocess.PIPE,
            )
            for rank in range(RANKS)
        ]
        try:
            outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    if any(rank.returncode for rank in ranks):
        sys.exit(f"{path}: a rank ended with {[rank.returncode for rank in ranks]}")
    found = [json.loads(output) for output in outputs]
    return {case: max(one[case] for one in found) for case in cases}


def compare(case: str, turns: list[list[Found]], build: int) -> dict[str, Any]:
    """Compare a build with the first one; ``turns`` have what each build took."""
    old, new = (statistics.median(turn[which][case] for turn in turns) for which in (0, build))
    ratios = sorted(turn[build][case] / turn[0][case] for turn in turns)
    return {
        "case": case,
        "bytes": CASES[case][0],
        "build": build,
        "old": old,
        "new": new,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def main() -> int:
    """Measure the builds and print."""
    if sys.argv[1:2] == [AS_RANK]:
        be_rank(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="+")
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    builds = [options.old, *options.new]
    cases = options.case or list(CASES)
    turns: list[list[Found]] = []
    for number in range(options.rounds):
        order = range(len(builds))[:: -1 if number % 2 else 1]
        found = {build: run_build(builds[build], cases) for build in order}
        turns.append([found[build] for build in range(len(builds))])
    cells = [compare(case, turns, build) for case in cases for build in range(1, len(builds))]
    for cell in cells:
        print(
            f"{cell['case']} {cell['bytes']}: {builds[cell['build']]} takes {cell['new']:.2f} us, "
            f"{cell['ratio']:.3f} of {builds[0]}'s {cell['old']:.2f} us "
            f"(turns from {cell['ratios'][0]:.2f} to {cell['ratios'][-1]:.2f})",
        )
    if options.json:
        options.json.write_text(json.dumps({"cores": os.cpu_count(), "cells": cells}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

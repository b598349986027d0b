# SPDX-License-Identifier: Apache-2.0
"""Time builds of pccl against each other on CPUs: did a change cost anything?

    python benchmarks/cpu_builds.py OLD NEW... [--case "numpy tcp"]... [--rounds 7] [--json PATH]
        [--bytes 67108864] [--ranks 2] [--cores 1] [--busy]

OLD and NEW are what PYTHONPATH has for each build (``build/dev/python``); give one build twice to
see what the machine's noise is. Builds take turns, in reversed order every second time, each with
new processes, bound to so many cores each; a turn gives the median over blocks of calls that follow
one another, the table medians over turns, and ratios to OLD. Two hardware threads of one core
disturb each other: choose others with ``taskset`` where the first ones are such. With ``--busy``
another process spins on every core.
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
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AS_RANK = "--as-rank"
LIMIT_S = 120
BLOCKS = 40
# What is measured: bytes of an all_reduce of random float32, or of a read of the peer's memory, and
# how many calls make a block. "named" passes the operator and the timeout by name.
CASES = {
    "numpy shm": (1 << 10, 1000),
    "named shm": (1 << 10, 1000),
    "torch shm": (1 << 10, 300),
    "numpy tcp": (64 << 10, 30),
    "p2p shm": (8, 1000),
    "p2p tcp": (8, 100),
}
BYTES_IN_BLOCK = 64 << 20  # of long calls


@dataclass(frozen=True)
class Setting:
    """What is the same in all turns; a rank gets it as JSON."""

    folder: str
    cases: list[str]
    nbytes: int  # 0: those of the case
    ranks: int
    cores: int  # of a rank

    def size_of(self, case: str) -> tuple[int, int]:
        """Return the bytes of a call, and how many calls make a block."""
        nbytes, calls = CASES[case]
        return (
            (self.nbytes, max(BYTES_IN_BLOCK // self.nbytes, 1)) if self.nbytes else (nbytes, calls)
        )


Found = dict[str, float]  # microseconds by case


def numpy_call(
    rank: int, setting: Setting, x: Any, transports: str, named: bool
) -> Callable[[], object]:
    import pccl

    group = pccl.Communicator(
        rank=rank,
        world_size=setting.ranks,
        rendezvous=f"file://{setting.folder}/{transports}-{named}",
        transports=transports,
    )
    if named:
        return lambda: group.all_reduce(x, op="max", timeout=60.0)
    return lambda: group.all_reduce(x, "max")


def torch_call(rank: int, setting: Setting, x: Any) -> Callable[[], object]:
    import torch
    import torch.distributed as dist

    url = f"file://{setting.folder}/torch"
    dist.init_process_group("pccl", init_method=url, rank=rank, world_size=setting.ranks)
    tensor = torch.from_numpy(x)
    return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX)


def exchange(rank: int, path: Path, ranks: int, mine: bytes) -> list[bytes]:
    """Return what each rank has put beside ``path``."""
    paths = [path.with_suffix(f".{each}") for each in range(ranks)]
    unfinished = path.with_suffix(f".part{rank}")
    unfinished.write_bytes(mine)
    unfinished.rename(paths[rank])
    deadline = time.monotonic() + LIMIT_S
    while not all(each.exists() for each in paths):
        if time.monotonic() > deadline:
            sys.exit(f"not all ranks came to {path.name}")
        time.sleep(0.001)
    return [each.read_bytes() for each in paths]


def p2p_call(rank: int, setting: Setting, x: Any, transport: str) -> Callable[[], object]:
    from pccl.p2p import Session

    session = Session(f"rank{rank}", listen="127.0.0.1", transports=transport)
    memory, target = session.allocate(x.nbytes), session.allocate(x.nbytes)
    memory.array()[:] = x.view(np.uint8)
    session.publish("x", memory)
    path = Path(setting.folder) / f"info-{transport}"
    session.load(exchange(rank, path, 2, session.connection_info())[1 - rank])
    remote = session.fetch(f"rank{1 - rank}", "x", LIMIT_S)

    def call() -> None:
        session.read(target, remote).wait()

    return call


def make_call(case: str, rank: int, setting: Setting) -> Callable[[], object]:
    count = setting.size_of(case)[0] // 4
    x = np.random.default_rng(rank).standard_normal(count).astype(np.float32)
    surface, transport = case.split()
    if surface == "torch":
        return torch_call(rank, setting, x)
    if surface == "p2p":
        return p2p_call(rank, setting, x, transport)
    return numpy_call(rank, setting, x, transport, surface == "named")


def measure(calls: int, call: Callable[[], object]) -> float:
    times = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times[BLOCKS // 4 :]) * 1e6


def be_rank(rank: int, setting: Setting) -> None:
    cores = sorted(os.sched_getaffinity(0))
    first = rank * setting.cores
    os.sched_setaffinity(0, {cores[i % len(cores)] for i in range(first, first + setting.cores)})
    # A peer uses them to the end.
    calls = {case: make_call(case, rank, setting) for case in setting.cases}
    found = {}
    for case, call in calls.items():
        exchange(rank, Path(setting.folder) / case.replace(" ", "-"), setting.ranks, b"")
        found[case] = measure(setting.size_of(case)[1], call)
    exchange(rank, Path(setting.folder) / "end", setting.ranks, b"")
    print(json.dumps(found))


def run_build(path: Path, setting: Setting) -> Found:
    """Return the slowest rank's times."""
    environment = os.environ | {"PYTHONPATH": str(path.resolve()), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="pccl-bench-") as folder:
        here = json.dumps(asdict(replace(setting, folder=folder)))
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, AS_RANK, str(rank), here],
                env=environment,
                stdout=subprocess.PIPE,
            )
            for rank in range(setting.ranks)
        ]
        try:
            outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    if any(rank.returncode for rank in ranks):
        sys.exit(f"{path}: a rank ended with {[rank.returncode for rank in ranks]}")
    found = [json.loads(output) for output in outputs]
    return {case: max(one[case] for one in found) for case in setting.cases}


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep ``count`` other processes running."""
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def compare(case: str, setting: Setting, turns: list[list[Found]], build: int) -> dict[str, Any]:
    """Compare a build with the first one; ``turns`` have what each build took."""
    old, new = (statistics.median(turn[which][case] for turn in turns) for which in (0, build))
    ratios = sorted(turn[build][case] / turn[0][case] for turn in turns)
    return {
        "case": case,
        "bytes": setting.size_of(case)[0],
        "build": build,
        "old": old,
        "new": new,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def main() -> int:
    """Measure the builds and print."""
    if sys.argv[1:2] == [AS_RANK]:
        be_rank(int(sys.argv[2]), Setting(**json.loads(sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="+")
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bytes", type=int, default=0, help="of a call")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each rank")
    parser.add_argument("--busy", action="store_true", help="beside a process for each core")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    builds = [options.old, *options.new]
    setting = Setting(
        folder="",
        cases=options.case or list(CASES),
        nbytes=options.bytes,
        ranks=options.ranks,
        cores=options.cores,
    )
    turns: list[list[Found]] = []
    with busy_cores(len(os.sched_getaffinity(0)) if options.busy else 0):
        for number in range(options.rounds):
            order = range(len(builds))[:: -1 if number % 2 else 1]
            found = {build: run_build(builds[build], setting) for build in order}
            turns.append([found[build] for build in range(len(builds))])
    cells = [
        compare(case, setting, turns, build)
        for case in setting.cases
        for build in range(1, len(builds))
    ]
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

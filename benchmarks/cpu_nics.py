#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives between hosts with several interfaces each, as network namespaces.

    sudo PYTHONPATH=build/dev/python:tests python benchmarks/cpu_nics.py --rates 1000 1000 500 250
    sudo PYTHONPATH=build/dev/python:tests python benchmarks/cpu_nics.py --ring 4 --rates 1000

Each rate is a cable between two hosts, in Mbit/s each way; with ``--ring``, each host has a cable
to the next one, at the first rate, and there is no switch. A figure is the speed of the busiest
host's sends, and its share of what its cables carry.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from faults.cables import Cable, cabled_hosts, ring_of
from support.ranks_on_hosts import run_in_namespaces

if TYPE_CHECKING:
    import pccl

#: Bytes that a rank sends of a buffer's bytes, by the number of ranks.
SENT = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
}


def call(comm: pccl.Communicator, name: str, x: np.ndarray, out: np.ndarray) -> None:
    if name == "all_reduce":
        comm.all_reduce(x)
    elif name == "all_gather":
        comm.all_gather(list(out.reshape(comm.world_size, -1)), x[: len(x) // comm.world_size])
    elif name == "all_to_all":
        comm.all_to_all(
            list(out.reshape(comm.world_size, -1)), list(x.reshape(comm.world_size, -1))
        )
    else:
        comm.broadcast(x, 0)


def measure(comm: pccl.Communicator, mib: int, turns: int, names: list[str]) -> dict[str, float]:
    x = np.ones(mib << 18, np.float32)
    out = np.empty_like(x)
    seconds = {}
    for name in names:
        call(comm, name, x, out)
        times = []
        for _ in range(turns):
            comm.barrier()
            start = time.perf_counter()
            call(comm, name, x, out)
            comm.barrier()
            times.append(time.perf_counter() - start)
        seconds[name] = sorted(times)[len(times) // 2]
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[1000] * 4)
    parser.add_argument("--ring", type=int, default=0)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ops", nargs="+", default=list(SENT))
    options = parser.parse_args()
    hosts = options.ring or 2
    cables = [Cable(0, 1, rate) for rate in options.rates]
    if options.ring:
        cables = ring_of(options.ring, options.rates[0])
    work = functools.partial(measure, mib=options.mib, turns=options.turns, names=options.ops)
    with cabled_hosts(hosts, cables) as cabling, tempfile.TemporaryDirectory() as folder:
        found = run_in_namespaces(work, cabling.names, Path(folder))
    megabits = sum(cable.mbit or 0 for cable in cables if 0 in (cable.first, cable.second))
    for name in options.ops:
        seconds = max(each[name] for each in found)
        rate = SENT[name](hosts) * (options.mib << 20) * 8e-6 / seconds
        print(f"{name:12} {seconds * 1e3:8.1f} ms  {rate:7.0f} Mbit/s  {rate / megabits:.3f}")


if __name__ == "__main__":
    main()

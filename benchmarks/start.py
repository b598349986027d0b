# SPDX-License-Identifier: Apache-2.0
"""How long groups take to come about, and how that grows with their ranks.

    python benchmarks/start.py --ranks 8 64 256 --endpoints 1024

Ranks are threads of this process, which share its cores and its GIL: what a rank does costs the
others time, which on machines of their own it would not. ``join`` is the slowest rank's time until
it has its communicator, from one store; ``first`` that until its first all_reduce, over TCP, has
ended. ``--endpoints`` join alone. The store is a file, which each rank reads itself, or ``--store
tcp``, one thread of rank 0 that answers all of them. Needs numpy and pccl alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import pccl

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Start:
    """Seconds of the slowest rank; ``first_s`` is None where nothing was summed."""

    ranks: int
    join_s: float
    first_s: float | None


def start(ranks: int, store: str, *, sums: bool) -> Start:
    """Make a group of threads, which meet at a store of that kind, and time it."""
    joined, summed = [0.0] * ranks, [0.0] * ranks
    together = threading.Barrier(ranks)
    failures: list[Exception] = []

    def be_rank(rank: int, rendezvous: str) -> None:
        try:
            together.wait()
            begun = time.perf_counter()
            with pccl.Communicator(
                rank=rank,
                world_size=ranks,
                rendezvous=rendezvous,
                timeout=TIMEOUT_S,
                transports="tcp",
            ) as comm:
                joined[rank] = time.perf_counter() - begun
                if sums:
                    x = np.full(4, rank, np.int64)
                    comm.all_reduce(x)
                    summed[rank] = time.perf_counter() - begun
                    assert x[0] == ranks * (ranks - 1) // 2
                together.wait()
        except Exception as error:
            failures.append(error)
            together.abort()

    with tempfile.TemporaryDirectory(prefix="pccl-start-") as folder:
        rendezvous = f"file://{folder}/store" if store == "file" else free_address()
        threads = [threading.Thread(target=be_rank, args=(i, rendezvous)) for i in range(ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return Start(ranks, max(joined), max(summed) if sums else None)


def free_address() -> str:
    """Return an address at which rank 0 may serve."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[8, 16, 32, 64, 128])
    parser.add_argument("--endpoints", type=int, nargs="*", default=[256, 512, 1024])
    parser.add_argument("--store", choices=["file", "tcp"], default="file")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: list[Start] = []
    print(f"{'ranks':>6}{'join ms':>10}{'first ms':>10}   growth of join")
    for count, sums in [
        *((n, True) for n in options.ranks),
        *((n, False) for n in options.endpoints),
    ]:
        found.append(start(count, options.store, sums=sums))
        latest = found[-1]
        first = "-" if latest.first_s is None else f"{latest.first_s * 1e3:.0f}"
        print(f"{count:>6}{latest.join_s * 1e3:>10.0f}{first:>10}   {growth(found)}", flush=True)
    if options.json:
        content = {
            "benchmark": "start",
            "store": options.store,
            "cores": len(os.sched_getaffinity(0)),
        }
        options.json.write_text(json.dumps(content | {"starts": [*map(asdict, found)]}) + "\n")


def growth(found: list[Start]) -> str:
    """Return the power of the number of ranks with which the time has grown since the last one."""
    if len(found) < 2 or found[-1].ranks <= found[-2].ranks:
        return ""
    before, after = found[-2:]
    power = math.log(after.join_s / before.join_s) / math.log(after.ranks / before.ranks)
    return f"ranks ^ {power:.1f}"


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What loading a capsule takes: reading and proving its file, and agreeing on it with all ranks.

    python benchmarks/capsule_load.py --json load.json

Each file is read by a process of its own, which has one thread: what counts is its time on a core,
the least of several, so that others on the machine do not. Memory is the most that the process had,
less what it had before. Ranks that agree are threads of one process, and have proven it already;
where there would be too many of them, it says so. Prints the bars beside the figures; exits with
status 1 where one is above its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pccl
from pccl import schedule
from pccl.capsule import Capsule

PROGRAMS: tuple[tuple[str, Literal["all_reduce", "all_gather"]], ...] = (
    ("ring", "all_reduce"),
    ("ring", "all_gather"),
    ("pat", "all_reduce"),
    ("pat", "all_gather"),
)
BARS = {8: (10.0, None), 128: (200.0, None), 1024: (3000.0, 500.0)}  # milliseconds, MB
MOST_THREADS = 32  # as ranks: each has links to all
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Row:
    """Milliseconds and megabytes of a capsule; None where so many ranks were not started."""

    program: str
    ranks: int
    file_bytes: int
    prove_ms: float
    memory_mb: float
    agree_ms: float | None

    @property
    def total_ms(self) -> float:
        return self.prove_ms + (self.agree_ms or 0.0)

    @property
    def is_within(self) -> bool:
        milliseconds, megabytes = BARS.get(self.ranks, (None, None))
        is_slow = milliseconds is not None and self.total_ms > milliseconds
        return not is_slow and (megabytes is None or self.memory_mb <= megabytes)

    def line(self) -> str:
        milliseconds, megabytes = BARS.get(self.ranks, (None, None))
        agree = "not run" if self.agree_ms is None else f"{self.agree_ms:.2f}"
        bar = f"{milliseconds or '-'} ms" + (f", {megabytes:g} MB" if megabytes else "")
        return (
            f"{self.program:<16} {self.ranks:>6} {self.file_bytes:>10} {self.prove_ms:>10.2f} "
            f"{agree:>9} {self.memory_mb:>8.1f}  {bar}{'' if self.is_within else '  ABOVE'}"
        )


def main() -> int:
    options = parser().parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return 0
    rows: list[Row] = []
    print(f"{'':<23} {'bytes':>10} {'prove ms':>10} {'agree ms':>9} {'MB':>8}  bar")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in options.ranks:
            for algorithm, collective in PROGRAMS:
                row = measured(Path(folder), algorithm, collective, ranks)
                print(row.line(), flush=True)
                rows.append(row)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.is_within for row in rows) else 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--ranks", type=int, nargs="+", default=[8, 32, 128, 1024])
    made.add_argument("--json", type=Path)
    made.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    return made


def measured(
    folder: Path, algorithm: str, collective: Literal["all_reduce", "all_gather"], ranks: int
) -> Row:
    file = folder / f"{algorithm}_{collective}_{ranks}.capsule"
    Capsule.of(schedule.generate(algorithm, collective, ranks).renamed("mine")).save(file)
    found = subprocess.run(
        [sys.executable, __file__, "--read", str(file)], check=True, capture_output=True, text=True
    )
    prove_ms, memory_mb = json.loads(found.stdout)
    agree_ms = agreed(file, ranks, folder) if ranks <= MOST_THREADS else None
    return Row(
        f"{algorithm} {collective}", ranks, file.stat().st_size, prove_ms, memory_mb, agree_ms
    )


def read(file: Path) -> tuple[float, float]:
    """Return the least milliseconds, and megabytes of the first time."""
    before = most_memory()
    times = [time_of(file)]
    memory = most_memory() - before
    while len(times) < 20 and sum(times) < 2.0:
        times.append(time_of(file))
    return min(times) * 1e3, memory


def time_of(file: Path) -> float:
    begin = time.process_time()
    pccl.Capsule.load(file)  # dropped at once, so that it is proven again next time
    return time.process_time() - begin


def most_memory() -> float:
    # getrusage() would count what the process had before it became this program.
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1e3


def agreed(file: Path, ranks: int, folder: Path) -> float:
    """Return the least milliseconds, of several, of the slowest rank."""
    capsule = pccl.Capsule.load(file)
    store = folder / f"store_{file.stem}"
    times: list[list[float]] = [[0.0] * ranks for _ in range(5)]
    together = threading.Barrier(ranks)

    def be_rank(rank: int) -> None:
        with pccl.Communicator(
            rank=rank, world_size=ranks, rendezvous=f"file://{store}", timeout=TIMEOUT_S
        ) as comm:
            for turn in times:
                comm.barrier()
                together.wait(TIMEOUT_S)
                begin = time.perf_counter()
                comm.load(capsule, "by name")
                turn[rank] = time.perf_counter() - begin
                comm.unload(capsule.name)

    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(be_rank, range(ranks)))
    return min(max(turn) for turn in times) * 1e3


if __name__ == "__main__":
    os.environ.setdefault("PCCL_COSTS_FILE", "off")
    sys.exit(main())

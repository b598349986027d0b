# SPDX-License-Identifier: Apache-2.0
"""NIXL's plugins side by side: transfers of two agents of one host, PCCL, UCX and POSIX.

    pip install --no-deps --target nixl nixl-cu12 && PYTHONPATH=nixl pccl nixl install
    PYTHONPATH=nixl python benchmarks/nixl_plugins.py --runs 3
    PYTHONPATH=nixl python benchmarks/nixl_plugins.py --in-turn host

Blocks of registered memory (numpy), scattered and in a random order where there are many; requests
are made once and posted again and again. Each plugin has processes of its own, turn and turn about:
on one host as each chooses ("host"), over TCP alone ("tcp"), and, for POSIX, which knows no peers,
memory to and from a file in memory beside PCCL's way to another process ("file").

A machine whose speed changes from one second to the next gives plugins that are timed one after the
other different machines. ``--in-turn`` times single blocks over PCCL and UCX from one process, for
10 ms each in turn, and prints the medians, and that of the ratios of neighbours.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from common import report
from common.cells import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KIB = 1024
SHAPES = [  # blocks, bytes of each
    *((1, size * KIB) for size in (4, 64, 1024, 16 * 1024, 64 * 1024)),
    *((count, 4 * KIB) for count in (100, 1000, 10_000)),
    (1000, 64 * KIB),
]
PATIENCE = 60.0  # seconds, for a transfer and for the other process
MOST = 64 * KIB * KIB  # bytes of a transfer
TURN = 0.01  # seconds


@dataclass(frozen=True)
class Way:
    """A plugin, what it is told, and the environment of its processes."""

    section: str
    name: str
    plugin: str
    parameters: dict[str, str]
    environment: dict[str, str]


WAYS = [
    Way("host", "pccl", "PCCL", {}, {}),
    Way("host", "ucx", "UCX", {}, {}),
    Way("tcp", "pccl", "PCCL", {"transports": "tcp"}, {}),
    Way("tcp", "ucx", "UCX", {}, {"UCX_TLS": "tcp"}),
    Way("file", "pccl", "PCCL", {}, {}),
    Way("file", "posix", "POSIX", {}, {}),
]


def nixl() -> Any:  # NIXL has no types for its bindings
    for name in ("nixl_cu12", "nixl_cu13"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{name}._api")
    sys.exit("no package of NIXL is here: see the head of this file")


class Side:
    """An agent and its memory, twice as long as what is moved: blocks leave gaps."""

    def __init__(self, name: str, way: Way) -> None:
        api = nixl()
        self.agent = api.nixl_agent(name, api.nixl_agent_config(backends=[]))
        self.agent.create_backend(way.plugin, way.parameters)
        self.memory = np.zeros(2 * MOST, np.uint8)
        self.base = self.memory.ctypes.data
        self.agent.register_memory([(self.base, self.memory.nbytes, 0, "")], "DRAM")


def rows(base: int, count: int, size: int, device: int, seed: int) -> np.ndarray:
    order = np.random.default_rng(seed).permutation(count).astype(np.uint64)
    columns = [base + order * np.uint64(2 * size), np.full(count, size), np.full(count, device)]
    return np.stack([np.asarray(column, np.uint64) for column in columns], axis=1)


def serve(way: Way) -> None:
    """Register memory, tell of it, and make no further call."""
    side = Side("target", way)
    print(side.agent.get_agent_metadata().hex(), side.base, flush=True)
    sys.stdin.read()


@contextlib.contextmanager
def target(way: Way) -> Iterator[tuple[bytes, int]]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", json.dumps(vars(way))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        words: list[str] = []
        while len(words) != 2 or not words[1].isdigit():
            line = process.stdout.readline()
            assert line, f"the target of {way.plugin} has ended"
            words = line.split()
        yield bytes.fromhex(words[0]), int(words[1])
    finally:
        process.kill()
        process.wait()


def median_time(agent: Any, handle: Any, seconds: float) -> float:
    """Return the median of as many posts as fit, in seconds."""

    def once() -> float:
        begin = time.perf_counter()
        state = agent.transfer(handle)
        while state == "PROC":
            assert time.perf_counter() - begin < PATIENCE, "a transfer does not end"
            state = agent.check_xfer_state(handle)
        assert state == "DONE", state
        return time.perf_counter() - begin

    first = min(once(), once())
    rounds = min(2000, max(5, math.ceil(seconds / first)))
    return statistics.median(once() for _ in range(rounds))


@dataclass(frozen=True)
class Far:
    """The memory at the other end, as the agent here knows it."""

    peer: str | bytes
    base: int
    kind: str = "DRAM"
    device: int = 0


def make_request(side: Side, far: Far, op: str, shape: tuple[int, int]) -> Any:
    count, size = shape
    local = side.agent.get_xfer_descs(rows(side.base, count, size, 0, 1), "DRAM")
    remote = side.agent.get_xfer_descs(rows(far.base, count, size, far.device, 2), far.kind)
    return side.agent.initialize_xfer(op, local, remote, far.peer)


def measure(way: Way, seconds: float) -> None:
    """Print microseconds by operation, blocks and bytes."""
    found = {}
    with contextlib.ExitStack() as stack:
        side = Side("initiator", way)
        if way.plugin == "POSIX":
            file = stack.enter_context(tempfile.TemporaryFile(dir="/dev/shm"))
            file.truncate(side.memory.nbytes)
            side.agent.register_memory([(0, side.memory.nbytes, file.fileno(), "")], "FILE")
            far = Far("initiator", 0, "FILE", file.fileno())
        else:
            metadata, base = stack.enter_context(target(way))
            far = Far(side.agent.add_remote_agent(metadata), base)
        for count, size in SHAPES:
            for op in ("READ", "WRITE"):
                handle = make_request(side, far, op, (count, size))
                found[f"{op} {count} {size}"] = 1e6 * median_time(side.agent, handle, seconds)
                side.agent.release_xfer_handle(handle)
    print("FOUND", json.dumps(found), flush=True)
    os._exit(0)  # what plugins do at the end of a process is not measured


def measure_in_turn(section: str, seconds: float) -> None:
    """Print microseconds of single blocks over PCCL and UCX, and how often as long UCX takes."""
    ways = [way for way in WAYS if way.section == section]
    with contextlib.ExitStack() as stack:
        ends = []
        for way in ways:
            os.environ.update(way.environment)
            side = Side(f"initiator of {way.name}", way)
            metadata, base = stack.enter_context(target(way))
            ends.append((side, Far(side.agent.add_remote_agent(metadata), base)))
        for count, size in SHAPES[:3]:
            for op in ("READ", "WRITE"):
                posts = [
                    (side.agent, make_request(side, far, op, (count, size))) for side, far in ends
                ]
                rounds = [
                    [1e6 * median_time(agent, handle, TURN) for agent, handle in posts]
                    for _ in range(math.ceil(seconds / TURN / len(posts)))
                ]
                medians = [statistics.median(us) for us in zip(*rounds, strict=True)]
                ratio = statistics.median(theirs / own for own, theirs in rounds)
                print(
                    f"{section} {op} of {size}: {medians[0]:.1f} / {medians[1]:.1f} ({ratio:.2f}x)"
                )
    sys.stdout.flush()
    os._exit(0)


def run_way(way: Way, seconds: float) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", json.dumps(vars(way)), "--seconds", str(seconds)],
        env={**os.environ, **way.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    if not lines:
        sys.exit(f"{way.plugin} ({way.section}) does not run here:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(lines[0].removeprefix("FOUND "))
    return found


def run_all(seconds: float) -> dict[str, list[Cell]]:
    """Return the cells of each section, of one run."""
    times: dict[str, dict[str, dict[str, float]]] = {}
    for way in WAYS:
        times.setdefault(way.section, {})[way.name] = run_way(way, seconds)
    return {section: list(cells_of(by_name)) for section, by_name in times.items()}


def cells_of(by_name: dict[str, dict[str, float]]) -> Iterator[Cell]:
    for key in by_name["pccl"]:
        op, count, size = key.split()
        us = {name: found[key] for name, found in by_name.items()}
        yield Cell(f"{op} x {count}", 2, int(size), us, "uint8")


def side_of_a_process(options: argparse.Namespace) -> Callable[[], None] | None:
    if options.serve:
        return lambda: serve(Way(**json.loads(options.serve)))
    if options.in_turn:
        return lambda: measure_in_turn(options.in_turn, options.seconds)
    if options.measure:
        return lambda: measure(Way(**json.loads(options.measure)), options.seconds)
    return None


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=0.2)
    for hidden in ("--serve", "--measure"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--in-turn", choices=["host", "tcp"], help="single blocks, PCCL / UCX")
    options = parser.parse_args()
    if side := side_of_a_process(options):
        side()
        return 0
    findings = report.repeat(options, lambda _: run_all(options.seconds))
    del options.serve, options.measure, options.in_turn
    summaries = {}
    for section, cells in findings.items():
        print(section)
        report.show(cells, "bytes of a block")
        summaries[section] = report.show_summary(cells)
    report.write("nixl_plugins", options, findings, summaries)
    return 0


if __name__ == "__main__":
    sys.exit(main())

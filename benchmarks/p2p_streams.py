# SPDX-License-Identifier: Apache-2.0
"""Reads of long memory over TCP between two processes of this host, beside UCX and Mooncake.

    python benchmarks/p2p_streams.py

PCCL takes part twice: without helper threads (``PCCL_TCP_THREADS=0``, one stream) and as it chooses
(lanes, where cores are idle). UCX is that of NIXL's wheel, with ``UCX_TLS=tcp``; Mooncake is its
wheel without CUDA. Where these are not installed, pip installs them into ``--packages``; where it
cannot, the table has PCCL alone, and the reason is printed. Each library has two processes of its
own, of which the target makes no call. The libraries take turns, and a figure is the median of the
turns' medians. Only numpy and PCCL are needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
SIZES = [1, 16, 64, 256]  # MiB
PATIENCE = 30.0  # seconds, for one read and for the start of a process
INSTALL_S = 120.0
HOST = "127.0.0.1"
PACKAGES = Path(__file__).resolve().parents[1] / "build" / "p2p_packages"


@dataclass(frozen=True)
class Library:
    """A column of the table.

    Attributes
    ----------
    module, wheel
        What its processes import, and what installs that; empty: PCCL itself.
    """

    name: str
    kind: str
    module: str = ""
    wheel: str = ""
    environment: dict[str, str] = field(default_factory=dict)


LIBRARIES = [
    Library("pccl, 0 helpers", "pccl", environment={"PCCL_TCP_THREADS": "0"}),
    Library("pccl", "pccl"),
    Library("ucx", "nixl", "nixl_cu12._api", "nixl-cu12", {"UCX_TLS": "tcp"}),
    Library("mooncake", "mooncake", "mooncake.engine", "mooncake-transfer-engine-non-cuda"),
]


class PcclEnd:
    """A session with registered memory."""

    def __init__(self, role: str, memory: np.ndarray) -> None:
        from pccl import p2p

        self._session = p2p.Session(role, transports="tcp")
        self._memory = self._session.register(memory)
        self.note = ""

    def address(self) -> list[str]:
        return [self._session.connection_info().hex(), self._memory.descriptor().serialize().hex()]

    def connect(self, address: list[str]) -> None:
        info, descriptor = map(bytes.fromhex, address)
        self._session.load(info)
        self._remote = self._session.import_memory("target", descriptor)

    def read(self, nbytes: int) -> None:
        work = self._session.read(self._memory[0:nbytes], self._remote[0:nbytes])
        work.wait(PATIENCE)
        stats = work.stats()
        self.note = f"{stats.lanes} lanes" + (f" ({stats.lane_reason})" * bool(stats.lane_reason))


class NixlEnd:
    """An agent of NIXL with UCX alone."""

    def __init__(self, role: str, memory: np.ndarray) -> None:
        from nixl_cu12 import _api as api

        self._agent: Any = api.nixl_agent(role, api.nixl_agent_config(backends=[]))
        self._agent.create_backend("UCX", {})
        self._base = memory.ctypes.data
        self._agent.register_memory([(self._base, memory.nbytes, 0, "")], "DRAM")
        self._requests: dict[int, Any] = {}
        self.note = ""

    def address(self) -> list[str]:
        return [self._agent.get_agent_metadata().hex(), str(self._base)]

    def connect(self, address: list[str]) -> None:
        self._peer = self._agent.add_remote_agent(bytes.fromhex(address[0]))
        self._remote = int(address[1])

    def _request(self, nbytes: int) -> Any:
        here, there = (
            self._agent.get_xfer_descs([(base, nbytes, 0)], "DRAM")
            for base in (self._base, self._remote)
        )
        return self._agent.initialize_xfer("READ", here, there, self._peer)

    def read(self, nbytes: int) -> None:
        if nbytes not in self._requests:
            self._requests[nbytes] = self._request(nbytes)
        request = self._requests[nbytes]
        deadline = time.monotonic() + PATIENCE
        state = self._agent.transfer(request)
        while state == "PROC":
            if time.monotonic() > deadline:
                raise TimeoutError(f"a read of {nbytes} bytes by UCX has not ended in {PATIENCE} s")
            state = self._agent.check_xfer_state(request)
        if state != "DONE":
            raise RuntimeError(f"a read of {nbytes} bytes by UCX has ended as {state}")


class MooncakeEnd:
    """A transfer engine over TCP."""

    def __init__(self, role: str, memory: np.ndarray) -> None:
        from mooncake.engine import TransferEngine

        self._engine: Any = TransferEngine()
        if self._engine.initialize(f"{HOST}:0", "P2PHANDSHAKE", "tcp", ""):
            raise RuntimeError(f"the {role}'s engine of Mooncake does not start")
        self._base = memory.ctypes.data
        if self._engine.register_memory(self._base, memory.nbytes):
            raise RuntimeError("Mooncake does not register the memory")
        self.note = ""

    def address(self) -> list[str]:
        return [f"{HOST}:{self._engine.get_rpc_port()}", str(self._base)]

    def connect(self, address: list[str]) -> None:
        self._peer, self._remote = address[0], int(address[1])

    def read(self, nbytes: int) -> None:
        if self._engine.transfer_sync_read(self._peer, self._base, self._remote, nbytes):
            raise RuntimeError(f"a read of {nbytes} bytes by Mooncake has failed")


ENDS: dict[str, Callable[[str, np.ndarray], Any]] = {
    "pccl": PcclEnd,
    "nixl": NixlEnd,
    "mooncake": MooncakeEnd,
}


def pattern(nbytes: int) -> np.ndarray:
    drawn = np.random.default_rng(59).integers(0, 256, 65521, dtype=np.uint8)
    return np.resize(drawn, nbytes)


def tell(*words: object) -> None:
    """Print a line for the other process, which skips what libraries print."""
    print("SAID", json.dumps(words), flush=True)


def serve(kind: str, nbytes: int) -> None:
    """Run a target: publish its memory, and make no further call."""
    memory = pattern(nbytes)
    end = ENDS[kind]("target", memory)
    tell(*end.address())
    sys.stdin.read()
    os._exit(0)  # what libraries do at the end of a process is not measured


def initiate(kind: str, nbytes: int) -> None:
    """Run an initiator: read as often as each line of the input requests."""
    memory = np.zeros(nbytes, np.uint8)
    end = ENDS[kind]("initiator", memory)
    end.connect(json.loads(sys.stdin.readline()))
    end.read(nbytes)
    if not (memory == pattern(nbytes)).all():
        raise ArithmeticError(f"{kind}: the bytes that were read are wrong")
    tell("ready")
    for line in sys.stdin:
        size, seconds = json.loads(line)
        tell(median_of_reads(lambda size=size: end.read(size), seconds), end.note)
    os._exit(0)


def median_of_reads(read: Callable[[], None], seconds: float) -> float:
    def once() -> float:
        begin = time.perf_counter()
        read()
        return time.perf_counter() - begin

    calls = max(2, min(100, int(seconds / once())))
    return statistics.median(once() for _ in range(calls))


class Process:
    """A process of one library."""

    def __init__(self, role: str, library: Library, nbytes: int, packages: Path) -> None:
        unset = {key: value for key, value in os.environ.items() if key != "PCCL_TCP_THREADS"}
        paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log = packages / f"{role} {library.name}.log"
        self._errors = self._log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, __file__, f"--{role}", library.kind, "--nbytes", str(nbytes)],
            env={**unset, **library.environment, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._role = role

    def ask(self, *words: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def answer(self) -> list[Any]:
        """Return what the process says next.

        Raises
        ------
        RuntimeError
            The process has ended.
        """
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("SAID "):
                said: list[Any] = json.loads(line.removeprefix("SAID "))
                return said
        self._process.wait(PATIENCE)
        lines = self._log.read_text().strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(f"the {self._role} has ended: {lines[-1]}")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()


class Pair:
    """Both processes of one library."""

    def __init__(self, library: Library, nbytes: int, packages: Path) -> None:
        self.library = library
        self.note = ""
        with contextlib.ExitStack() as stack:
            target = self._process(stack, "serve", nbytes, packages)
            self._initiator = self._process(stack, "initiate", nbytes, packages)
            self._initiator.ask(*target.answer())
            self._initiator.answer()
            self._ends = stack.pop_all()

    def _process(
        self, stack: contextlib.ExitStack, role: str, nbytes: int, packages: Path
    ) -> Process:
        process = Process(role, self.library, nbytes, packages)
        stack.callback(process.end)
        return process

    def read(self, nbytes: int, seconds: float) -> float:
        self._initiator.ask(nbytes, seconds)
        median, self.note = self._initiator.answer()
        return float(median)

    def end(self) -> None:
        self._ends.close()


def install(library: Library, packages: Path) -> None:
    """Install the wheel of a library that is not there.

    Raises
    ------
    RuntimeError
        The library is not there, and pip cannot install it.
    """
    paths = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = subprocess.run(
        [sys.executable, "-c", f"import {library.module}"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        check=False,
    )
    if found.returncode == 0:
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "5"]
    wanted = ["--no-deps", "--only-binary", ":all:", "--target", str(packages), library.wheel]
    try:
        done = subprocess.run(
            [*pip, *wanted], capture_output=True, text=True, check=False, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"pip has not installed {library.wheel} in {INSTALL_S:.0f} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(f"pip does not install {library.wheel}: {lines[-1]}")


def start(options: argparse.Namespace) -> list[Pair]:
    """Start the processes of the libraries that run here; print why others do not."""
    pairs = []
    for library in LIBRARIES:
        try:
            if library.wheel:
                install(library, options.packages)
            pairs.append(Pair(library, max(options.sizes) * MIB, options.packages))
        except RuntimeError as error:
            if not library.wheel:
                raise
            print(f"{library.name} is left out: {error}", flush=True)
    return pairs


def measure(pairs: list[Pair], options: argparse.Namespace) -> dict[int, dict[str, float]]:
    """Return seconds by MiB and library. The first turn is whole, whatever ``--budget`` is."""
    found: dict[int, dict[str, list[float]]] = {}
    end = time.monotonic() + options.budget
    for turn in range(options.rounds):
        for size in options.sizes:
            if turn and time.monotonic() > end:
                print(f"turn {turn + 1} of {options.rounds} ends early: its time is over")
                return medians_of(found)
            for pair in pairs[:: -1 if turn % 2 else 1]:
                times = found.setdefault(size, {}).setdefault(pair.library.name, [])
                times.append(pair.read(size * MIB, options.seconds))
    return medians_of(found)


def medians_of(found: dict[int, dict[str, list[float]]]) -> dict[int, dict[str, float]]:
    return {
        size: {name: statistics.median(times) for name, times in by_name.items()}
        for size, by_name in found.items()
    }


def show(found: dict[int, dict[str, float]], pairs: list[Pair]) -> None:
    base, own, *others = (pair.library.name for pair in pairs)
    names = [base, own, *others]
    print(f"reads over loopback TCP on {len(os.sched_getaffinity(0))} cores, GB/s")
    ratios = [f"{own} / {name}" for name in (base, *others)]
    print(" | ".join(["     MiB", *(f"{name:>15}" for name in names), *ratios]))
    for size, seconds in found.items():
        speeds = [f"{size * MIB / seconds[name] / 1e9:15.2f}" for name in names]
        gains = [
            f"{seconds[name] / seconds[own]:{len(ratio)}.2f}"
            for name, ratio in zip((base, *others), ratios, strict=True)
        ]
        print(" | ".join([f"{size:8}", *speeds, *gains]))
    for pair in pairs:
        if pair.note:
            print(f"{pair.library.name}: {pair.note}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=SIZES, help="MiB")
    add("--rounds", type=int, default=5, help="turns of each library")
    add("--seconds", type=float, default=0.3, help="of a turn")
    add("--budget", type=float, default=40.0, help="seconds after which turns end")
    add("--packages", type=Path, default=PACKAGES, help="folder of the other libraries' packages")
    add("--json", type=Path, help="file for the seconds, by MiB and library")
    for hidden in ("--serve", "--initiate"):
        add(hidden, choices=list(ENDS), help=argparse.SUPPRESS)
    add("--nbytes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.nbytes)
    if options.initiate:
        initiate(options.initiate, options.nbytes)
    options.packages.mkdir(parents=True, exist_ok=True)
    pairs = start(options)
    try:
        found = measure(pairs, options)
        show(found, pairs)
    finally:
        for pair in pairs:
            pair.end()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

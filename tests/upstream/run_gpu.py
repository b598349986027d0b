# SPDX-License-Identifier: Apache-2.0
"""Compare pccl with NCCL on PyTorch's own distributed_test suite, on this machine's GPUs.

NCCL runs first; every test that passes there must pass on pccl, except those that
``gpu_exceptions.toml`` lists with a reason. Outcomes are kept as they come, and what has one is not
run again: an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from batches import Outcome, add_output, read_results

HERE = Path(__file__).parent
SUITE = HERE / "gpu_suite.py"
EXCEPTIONS = HERE / "gpu_exceptions.toml"
TESTS_PER_PROCESS = 12
SECONDS_PER_TEST = 90


@dataclass
class Run:
    """One backend at one world size; ``results`` holds a JSON object a line for each outcome."""

    backend: str
    world_size: int
    results: Path
    deadline: float
    left: deque[list[str]] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def outcomes(self) -> dict[str, Outcome]:
        return read_results(self.results) if self.results.exists() else {}

    def do(self, tests: list[str], jobs: int) -> dict[str, Outcome]:
        """Run what has no outcome yet, as far as time allows; return all outcomes of ``tests``."""
        self.results.touch()
        known = self.outcomes()
        new = [name for name in tests if name not in known]
        self.left = deque(
            new[at : at + TESTS_PER_PROCESS] for at in range(0, len(new), TESTS_PER_PROCESS)
        )
        with ThreadPoolExecutor(jobs) as pool:
            for worker in [pool.submit(self.work) for _ in range(jobs)]:
                worker.result()
        known = self.outcomes()
        return {name: known[name] for name in tests if name in known}

    def work(self) -> None:
        while time.monotonic() < self.deadline:
            try:
                tests = self.left.popleft()
            except IndexError:
                return
            self.run_some(tests)

    def run_some(self, tests: list[str]) -> None:
        command = [sys.executable, str(SUITE), "--backend", self.backend]
        command += ["--world-size", str(self.world_size), "--results", str(self.results), *tests]
        longest = len(tests) * SECONDS_PER_TEST
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            process = subprocess.Popen(command, cwd=HERE, stdout=log, stderr=subprocess.STDOUT)
            try:
                process.wait(min(longest, max(1.0, self.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            is_interrupted = time.monotonic() >= self.deadline
            log.seek(0)
            self.keep(tests, log.read(), is_interrupted)

    def keep(self, tests: list[str], output: str, is_interrupted: bool) -> None:
        """Add to the results what the suite printed of failures, and who left no outcome."""
        with self.lock:
            found = {name: each for name, each in self.outcomes().items() if name in tests}
            if not is_interrupted:
                lost = Outcome("fail", 0.0, f"left no outcome: {output[-1500:]}")
                found = dict.fromkeys(tests, lost) | found
            failed = [name for name, outcome in found.items() if outcome.failed]
            with self.results.open("a") as stream:
                for name in failed:
                    outcome = add_output({name: found[name]}, output)[name]
                    record = {"test": name, "outcome": "fail", "seconds": outcome.seconds}
                    stream.write(json.dumps(record | {"reason": outcome.reason[-4000:]}) + "\n")
            reported = " ".join(
                f"{name.removeprefix('test_')}={o.outcome}" for name, o in found.items()
            )
            print(f"{self.backend} n{self.world_size}: {reported}", flush=True)


def all_tests() -> list[str]:
    """Return the names of the suite's tests, found in a process that ends."""
    code = "import gpu_suite, unittest; gpu_suite.prepare_gpu_environment('nccl', 2); "
    code += "suite = gpu_suite.load_suite(); "
    code += "print(*unittest.defaultTestLoader.getTestCaseNames(suite), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, check=True, capture_output=True, text=True
    )
    return [line for line in found.stdout.splitlines() if line.startswith("test_")]


def compare(world_size: int, tests: list[str], options: argparse.Namespace) -> list[str]:
    """Run both backends; print the counts and return what is wrong."""
    deadline = time.monotonic() + options.seconds

    def run(backend: str, names: list[str]) -> dict[str, Outcome]:
        results = options.output / f"{backend}.{world_size}.jsonl"
        return Run(backend, world_size, results, deadline).do(names, options.jobs)

    theirs = run("nccl", tests)
    passing = [name for name, outcome in theirs.items() if outcome.passed]
    ours = run("pccl", passing)
    passed = sum(outcome.passed for outcome in ours.values())
    print(
        f"{world_size} ranks, {len(tests)} tests: {len(theirs)} run on nccl, {len(passing)} pass; "
        f"of these {len(ours)} run on pccl, {passed} pass",
        flush=True,
    )
    missing = len(tests) - len(theirs) + len(passing) - len(ours)
    problems = [f"{missing} runs are left: the same command goes on"] if missing else []
    excepted = tomllib.loads(EXCEPTIONS.read_text())["excepted"]
    for name, outcome in ours.items():
        if name in excepted and outcome.passed:
            problems.append(f"{name} passes but is excepted: remove the entry")
        if name not in excepted and not outcome.passed:
            problems.append(f"{name}: {outcome.outcome}: {outcome.reason[-1200:]}")
    return [f"{world_size} ranks: {problem}" for problem in problems]


def main() -> int:
    """Compare at every world size; 0 means that the promise holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world-sizes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--jobs", type=int, default=8, help="suite processes side by side")
    parser.add_argument("--seconds", type=float, default=600, help="for one world size")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name has this")
    parser.add_argument("--output", type=Path, required=True, help="folder that keeps outcomes")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    options.output = options.output.resolve()
    tests = [name for name in all_tests() if options.pattern in name]
    problems = [each for size in options.world_sizes for each in compare(size, tests, options)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

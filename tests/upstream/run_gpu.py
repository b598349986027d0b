"""Compare pccl with NCCL on PyTorch's own distributed_test suite, on this machine's GPUs.

NCCL runs first; every test that passes there must pass on pccl, except those that
``gpu_exceptions.toml`` lists with a reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from batches import Outcome, add_output, read_results

HERE = Path(__file__).parent
SUITE = HERE / "gpu_suite.py"
EXCEPTIONS = HERE / "gpu_exceptions.toml"


def run_batch(backend: str, world_size: int, tests: list[str], limit: float) -> dict[str, Outcome]:
    """Run tests one after another; those that left no outcome within ``limit`` seconds fail."""
    with tempfile.TemporaryDirectory() as scratch:
        results, log = Path(scratch) / "results", Path(scratch) / "log"
        results.touch()
        command = [sys.executable, str(SUITE), "--backend", backend]
        command += ["--world-size", str(world_size), "--results", str(results), *tests]
        with log.open("w") as stream:
            try:
                subprocess.run(
                    command, stdout=stream, stderr=subprocess.STDOUT, check=False, timeout=limit
                )
            except subprocess.TimeoutExpired:
                print(f"{backend}, {world_size} ranks: a batch did not end", flush=True)
        output = log.read_text(errors="replace")
        lost = Outcome("fail", 0.0, "left no outcome: " + output[-600:])
        return dict.fromkeys(tests, lost) | add_output(read_results(results), output)


def run_all(
    backend: str, world_size: int, tests: list[str], jobs: int, limit: float
) -> dict[str, Outcome]:
    hands = [tests[part::jobs] for part in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        done = pool.map(
            lambda hand: run_batch(backend, world_size, hand, limit), [h for h in hands if h]
        )
        return {name: outcome for part in done for name, outcome in part.items()}


def all_tests() -> list[str]:
    """Return the names of the suite's tests, found in a process that ends."""
    code = "import gpu_suite, unittest; gpu_suite.prepare_gpu_environment('nccl', 2); "
    code += "suite = gpu_suite.load_suite(); "
    code += "print(*unittest.defaultTestLoader.getTestCaseNames(suite), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, check=True, capture_output=True, text=True
    )
    return [line for line in found.stdout.splitlines() if line.startswith("test_")]


def compare(world_size: int, options: argparse.Namespace) -> list[str]:
    """Run both backends; print the counts and return what is wrong."""
    tests = [name for name in all_tests() if options.pattern in name]
    theirs = run_all("nccl", world_size, tests, options.jobs, options.limit)
    passing = [name for name in tests if theirs[name].passed]
    ours = run_all("pccl", world_size, passing, options.jobs, options.limit)
    excepted = tomllib.loads(EXCEPTIONS.read_text())
    problems = []
    for name in passing:
        if name in excepted and ours[name].passed:
            problems.append(f"{name} passes but is excepted: remove the entry")
        if name not in excepted and not ours[name].passed:
            problems.append(f"{name}: {ours[name].outcome}: {ours[name].reason[-1500:]}")
    passed = sum(outcome.passed for outcome in ours.values())
    print(f"{world_size} ranks: nccl passes {len(passing)}, pccl {passed} of these", flush=True)
    if options.output:
        record = {name: [o.outcome, o.seconds, o.reason[-3000:]] for name, o in ours.items()}
        record |= {f"nccl {n}": [o.outcome, o.seconds, o.reason[-300:]] for n, o in theirs.items()}
        options.output.with_suffix(f".{world_size}.json").write_text(json.dumps(record, indent=1))
    return [f"{world_size} ranks: {problem}" for problem in problems]


def main() -> int:
    """Compare at every world size; 0 means that the promise holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world-sizes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--jobs", type=int, default=8, help="suite processes side by side")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a batch")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name has this")
    parser.add_argument("--output", type=Path, help="write every outcome beside this name")
    options = parser.parse_args()
    problems = [each for size in options.world_sizes for each in compare(size, options)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

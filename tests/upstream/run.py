# SPDX-License-Identifier: Apache-2.0
"""Compare pccl with Gloo on PyTorch's own distributed_test suite.

Every test that passes on Gloo must pass on pccl, except those that ``exceptions.toml`` lists with
a reason. Gloo's outcomes are kept in ``gloo_baseline.json``, one entry per torch version;
``--update-baseline`` measures them again. Exit status 0 means that the promise holds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from batches import Batch, Outcome, run_batches

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent
BASELINE = HERE / "gloo_baseline.json"
EXCEPTIONS = HERE / "exceptions.toml"
WORLD_SIZES = (2, 3, 4, 8)
SMALL_WORLD = "Skipped due to small world size."

Results = dict[str, Outcome]


@dataclass(frozen=True)
class Exceptions:
    """The checked list: what need not pass, what passes by a substitute, what Gloo cannot do."""

    excepted: dict[str, str]
    through: frozenset[str]
    required: dict[str, str]

    @staticmethod
    def load(backend: str) -> Exceptions:
        """Return the list for ``backend``; for Gloo itself it is empty."""
        tables = {} if backend == "gloo" else tomllib.loads(EXCEPTIONS.read_text())
        excepted = {
            name: entry
            for name, entry in tables.get("excepted", {}).items()
            if "before" not in entry or release(torch_version()) < release(entry["before"])
        }
        return Exceptions(
            excepted={name: entry["reason"] for name, entry in excepted.items()},
            through=frozenset(name for name, entry in excepted.items() if "through" in entry),
            required=tables.get("required", {}),
        )


def torch_version() -> str:
    from importlib.metadata import version

    return version("torch").split("+")[0]


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def load_baseline() -> dict[int, Results]:
    """Gloo's outcomes by world size for the installed torch."""
    versions = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if torch_version() not in versions:
        sys.exit(f"no Gloo baseline for torch {torch_version()}: run with --update-baseline")
    return {
        int(world_size): {
            name: Outcome(outcome, seconds, reason)
            for name, (outcome, seconds, reason) in tests.items()
        }
        for world_size, tests in versions[torch_version()].items()
    }


def save_baseline(baseline: dict[int, Results]) -> None:
    """Write one line per test, so that a change reads well in a diff."""
    versions = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    versions[torch_version()] = {
        str(world_size): {
            name: [result.outcome, result.seconds, last_error(result.reason)]
            for name, result in sorted(tests.items())
        }
        for world_size, tests in baseline.items()
    }
    text = json.dumps(versions, indent=1)
    for broken, joined in (("\n    ", " "), ("[ ", "["), ("\n   ]", "]")):
        text = text.replace(broken, joined)
    BASELINE.write_text(text + "\n")


def last_error(text: str) -> str:
    """The reason itself, or the line of a traceback that names the error."""
    errors = [line for line in text.splitlines() if line.partition(":")[0].endswith("Error")]
    return (errors or [text])[-1].strip()


def small_world_tests(results: Results) -> list[str]:
    return [name for name, result in results.items() if result.reason == SMALL_WORLD]


def measure_baseline(jobs: int) -> dict[int, Results]:
    """Run everything on Gloo, and at 8 ranks what smaller worlds skip."""
    sizes = [size for size in WORLD_SIZES if size < 8]
    all_tests = run_batches([Batch("gloo", size) for size in sizes], jobs)
    baseline = dict(zip(sizes, all_tests, strict=True))
    large = Batch("gloo", 8, small_world_tests(baseline[4]))
    baseline[8] = merge(run_batches(large.split(jobs, {}), jobs))
    return baseline


def merge(results: Iterable[Results]) -> Results:
    return {name: outcome for part in results for name, outcome in part.items()}


def measure(backend: str, plan: dict[int, list[str]], through: bool, args) -> dict[int, Results]:
    """Run each world size's tests on ``backend``, spread over ``args.jobs`` processes."""
    baseline = load_baseline()
    batches = []
    for world_size, tests in plan.items():
        seconds = {name: baseline[world_size][name].seconds for name in tests}
        batches += Batch(backend, world_size, tests, through).split(args.jobs, seconds)
    outcomes = run_batches(batches, args.jobs)
    measured: dict[int, Results] = {size: {} for size in plan}
    for batch, outcome in zip(batches, outcomes, strict=True):
        measured[batch.world_size] |= outcome
    return measured


def must_pass(baseline: Results, exceptions: Exceptions) -> list[str]:
    """The tests that Gloo passes, and those that only pccl is asked to pass."""
    extra = {n for n in exceptions.required if n in baseline and baseline[n].failed}
    return [name for name in baseline if baseline[name].passed or name in extra]


def find_problems(
    world_size: int, results: Results, substituted: Results, exceptions: Exceptions
) -> list[str]:
    problems = []
    for name, result in results.items():
        if name in exceptions.excepted and result.passed:
            problems.append(f"{world_size} ranks: {name} passes but is excepted: remove the entry")
        if name not in exceptions.excepted and not result.passed:
            reason = last_error(result.reason)
            problems.append(f"{world_size} ranks: {name}: {result.outcome}: {reason}")
    for name, result in substituted.items():
        if not result.passed:
            reason = last_error(result.reason)
            problems.append(f"{world_size} ranks: {name}, substituted: {reason}")
    return problems


def find_stale_entries(baseline: dict[int, Results], exceptions: Exceptions) -> list[str]:
    """Entries that say something about Gloo that is not so."""
    passing = {n for results in baseline.values() for n, r in results.items() if r.passed}
    failing = {
        n for results in baseline.values() for n, r in results.items() if r.outcome == "fail"
    }
    not_passing = exceptions.excepted.keys() - passing
    not_failing = exceptions.required.keys() - failing
    return [f"{name} is excepted, but Gloo does not pass it" for name in sorted(not_passing)] + [
        f"{name} is required beyond Gloo, but Gloo passes it" for name in sorted(not_failing)
    ]


def print_table(
    backend: str,
    baseline: dict[int, Results],
    measured: dict[int, Results],
    exceptions: Exceptions,
) -> None:
    print(
        f"\n{'ranks':>5} {'gloo passes':>12} {backend + ' passes':>12} {'excepted':>9} "
        f"{'gloo s':>7} {backend + ' s':>7}"
    )
    for world_size, results in measured.items():
        gloo = [baseline[world_size][name] for name in results]
        print(
            f"{world_size:>5} {sum(r.passed for r in gloo):>12} "
            f"{sum(r.passed for r in results.values()):>12} "
            f"{len(exceptions.excepted.keys() & results.keys()):>9} "
            f"{sum(r.seconds for r in gloo):>7.0f} "
            f"{sum(r.seconds for r in results.values()):>7.0f}"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="pccl", help="backend to compare with Gloo")
    parser.add_argument("--world-sizes", type=int, nargs="+", default=WORLD_SIZES)
    parser.add_argument("--jobs", type=int, default=2, help="suite processes side by side")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name has this")
    parser.add_argument("--output", type=Path, help="write every outcome here, with tracebacks")
    parser.add_argument("--update-baseline", action="store_true", help="measure Gloo again")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    if args.update_baseline:
        save_baseline(measure_baseline(args.jobs))
    baseline, exceptions = load_baseline(), Exceptions.load(args.backend)
    plan = {
        size: [n for n in must_pass(baseline[size], exceptions) if args.pattern in n]
        for size in args.world_sizes
    }
    through = {size: [n for n in names if n in exceptions.through] for size, names in plan.items()}
    measured = measure(args.backend, plan, False, args)
    substituted = measure(args.backend, through, True, args)

    problems = find_stale_entries(baseline, exceptions)
    for size, results in measured.items():
        problems += find_problems(size, results, substituted.get(size, {}), exceptions)
    if args.output:
        outcomes = {s: {n: asdict(r) for n, r in rs.items()} for s, rs in measured.items()}
        args.output.write_text(json.dumps(outcomes, indent=1) + "\n")
    print("\n".join(problems))
    print_table(args.backend, baseline, measured, exceptions)
    print(f"{len(problems)} problems" if problems else "every test that passes on Gloo passes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

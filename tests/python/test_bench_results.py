# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/common makes of times, and that the benchmarks run; never the times."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from benchmarks.common.cells import KIB, MIB, Cell, merge_runs, summary
from benchmarks.common.report import _short_name
from benchmarks.common.timing import Budget, Team, measure_case, random_input, take_turns

from pccl.bench.cases import COLLECTIVES, Case

REPOSITORY = Path(__file__).resolve().parents[2]
BUDGET = Budget(rounds=3, seconds=0.001, least=2, most=4)


def cell(size: int, **us: float) -> Cell:
    return Cell("all_reduce", 2, size, us)


def bench(script: str, *arguments: object) -> list[str]:
    return [sys.executable, str(REPOSITORY / "benchmarks" / script), *map(str, arguments)]


def test_ratio_compares_with_the_fastest_other_library() -> None:
    assert cell(1, pccl=2, gloo=10, mpi=3).ratio == 1.5
    assert cell(1, pccl=2).ratio is None
    assert cell(1, gloo=2).ratio is None


def test_runs_merge_into_medians_by_cell() -> None:
    runs = [
        [cell(1, pccl=a, gloo=9), cell(2, pccl=7, gloo=b)] for a, b in [(1, 5), (30, 6), (2, 4)]
    ]
    small, large = merge_runs(runs)
    assert (small.us, large.us) == ({"pccl": 2, "gloo": 9}, {"pccl": 7, "gloo": 5})
    assert [run["pccl"] for run in small.runs] == [1, 30, 2]


def test_cells_survive_json() -> None:
    found = cell(1, pccl=2.5, gloo=9)
    assert Cell.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.to_json()["pccl_us"] == 2.5


def test_classes_of_size_have_geometric_means() -> None:
    ratios = {KIB: 2, 16 * KIB: 8, 64 * KIB: 3, MIB: 3, 4 * MIB: 5}
    found = summary([cell(size, pccl=1, gloo=ratio) for size, ratio in ratios.items()])
    assert [round(v["mean"], 9) for v in found.values()] == [4, 3, 5]
    assert [v["worst"] for v in found.values()] == [2, 3, 5]


def test_a_turn_has_as_many_calls_as_its_budget_allows() -> None:
    assert [BUDGET.calls(seconds) for seconds in (1.0, 0.0003, 1e-6)] == [2, 3, 4]


def test_the_slowest_rank_of_each_call_counts_and_its_median_is_taken() -> None:
    elsewhere = iter([[1.0, 1.0], [5.0, 3.0]] * 3)
    team = Team(0, lambda: None, lambda times: [*map(max, times, next(elsewhere))])
    assert take_turns({"pccl": lambda: None}, team, BUDGET) == {"pccl": 4e6}


def test_libraries_take_turns_in_both_orders() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in ("a", "b")}
    take_turns(calls, Team(0, lambda: None, lambda times: times), BUDGET)
    turns = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert turns == ["a", "b", "a", "b"]


def test_a_wrong_result_names_the_library() -> None:
    case = Case("all_gather", 2, 4)
    x, out = case.buffers()
    team = Team(1, lambda: None, lambda times: times)
    with pytest.raises(ArithmeticError, match="idle: "):
        measure_case({"idle": lambda: None}, case, (x, out), team, BUDGET)


def test_inputs_are_random_anew_in_each_turn() -> None:
    case = Case("all_gather", 1, 4000)
    x, out = case.buffers()
    seen = []

    def call() -> None:
        seen.append(x.copy())
        out[:] = x
        x[:] = 0

    measure_case({"copy": call}, case, (x, out), Team(0, lambda: None, lambda times: times), BUDGET)
    turns = [numbers for numbers in seen[1:] if numbers.any()]
    assert len(turns) == BUDGET.rounds
    assert all(len(np.unique(numbers)) > 0.99 * x.size for numbers in turns)


def test_sums_in_place_stay_finite() -> None:
    x = random_input(Case("all_reduce", 4, 4000), 0)
    for _ in range(100):
        x += x + x + x
    assert np.isfinite(x).all()
    assert x.all()


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        ("AMD EPYC", "2core-epyc"),
        ("AMD EPYC 9354 32-Core Processor", "2core-epyc-9354"),
        ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", "2core-xeon-e5-2670-v3"),
    ],
)
def test_names_of_machines(cpu: str, name: str) -> None:
    assert _short_name({"cpu": cpu, "cores": 2}) == name


@pytest.mark.multiproc
@pytest.mark.parametrize("script", ["cpu_torch.py", "cpu_numpy.py"])
def test_a_benchmark_writes_every_cell(script: str, tmp_path: Path) -> None:
    if script == "cpu_numpy.py" and not (shutil.which("mpirun") and find_spec("mpi4py")):
        pytest.skip("Open MPI or mpi4py is missing: tools/setup_benchmarks.sh")
    path = tmp_path / "found.json"
    small = ("--ranks", 2, "--sizes", "64", "4K", "--rounds", 1, "--most", 5, "--runs", 2)
    done = subprocess.run(
        bench(script, *small, "--json", path),
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert path.exists(), done.stderr
    found = json.loads(path.read_text())
    assert [(c["collective"], c["bytes"]) for c in found["cells"]] == [
        (collective, size) for collective in COLLECTIVES for size in (64, 4096)
    ]
    assert all(len(c["runs"]) == 2 and c["ratio"] > 0 for c in found["cells"])
    assert found["benchmark"] == script.removesuffix(".py")
    assert found["options"]["runs"] == 2


@pytest.mark.multiproc
def test_a_benchmark_that_is_ended_leaves_no_rank() -> None:
    command = bench("cpu_torch.py", "--sizes", "1K", "--runs", 100, "--json", os.devnull)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ranks: list[str] = []
    while len(ranks) < 2 and process.poll() is None:  # the very moment that the second one starts
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert [rank for rank in ranks if Path(f"/proc/{rank}").exists()] == []

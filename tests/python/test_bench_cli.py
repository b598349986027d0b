# SPDX-License-Identifier: Apache-2.0
"""``pccl bench``: rows and errors, against the definitions of nccl-tests; never the times."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from pccl import bench, cli
from pccl.bench import collectives
from pccl.bench.cases import COLLECTIVES, Case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What nccl-tests calls the count, as a share of the whole buffer, and bus over algorithm bandwidth.
FACTORS = {
    "all_reduce": lambda n: (1, 2 * (n - 1) / n),
    "all_gather": lambda n: (1 / n, (n - 1) / n),
    "reduce_scatter": lambda n: (1 / n, (n - 1) / n),
    "broadcast": lambda n: (1, 1),
    "all_to_all": lambda n: (1 / n, (n - 1) / n),
}


def run_bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pccl", "bench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.multiproc
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rows_hold_together(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    done = run_bench("--ranks", ranks, "--min", 1200, "--max", "4800", "--output", path)
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert found["ranks"] == ranks
    rows = found["rows"]
    assert [row["collective"] for row in rows] == [c for c in COLLECTIVES for _ in range(2)]
    assert [row["size"] for row in rows] == [1200, 4800] * len(COLLECTIVES)
    for row in rows:
        share, factor = FACTORS[row["collective"]](ranks)
        assert row["count"] == round(row["size"] / 4 * share)
        assert row["algbw"] == pytest.approx(row["size"] / (row["time_us"] * 1e-6) / 1e9)
        assert row["busbw"] == pytest.approx(row["algbw"] * factor)
        assert row["wrong"] == 0
        reduces = row["collective"] in ("all_reduce", "reduce_scatter")
        assert row["redop"] == ("sum" if reduces else "none")
        assert row["root"] == (0 if row["collective"] == "broadcast" else -1)


@pytest.mark.multiproc
def test_the_table_has_a_line_for_each_size_below_its_heading() -> None:
    done = run_bench("all_to_all", "--min", 512, "--max", "2K", "--factor", 2, "--dtype", "int64")
    assert done.returncode == 0, done.stderr
    heading, columns, units, *lines = done.stdout.splitlines()
    assert "all_to_all" in heading
    names = columns.lstrip("# ").split()
    assert names[:3] + names[-2:] == ["size", "count", "type", "busbw", "#wrong"]
    assert units.lstrip("# ").split() == ["(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"]
    cells = [dict(zip(names, line.split(), strict=True)) for line in lines]
    assert [(c["size"], c["count"], c["type"], c["#wrong"]) for c in cells] == [
        (str(size), str(size // 8 // 2), "int64", "0") for size in (512, 1024, 2048)
    ]


@pytest.mark.multiproc
@pytest.mark.parametrize(
    ("dtype", "op"),
    [("float16", "avg"), ("int8", "max"), ("bool", "sum"), ("complex64", "sum"), ("int8", "prod")],
)
def test_types_and_reductions_have_right_results(dtype: str, op: str) -> None:
    job = bench.Job((1000,), ("all_reduce", "reduce_scatter"), ranks=3, dtype=dtype, op=op)
    assert [row.wrong for row in bench.run(job)] == [0, 0]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_each_wrong_element_counts(collective: str) -> None:
    case = Case.of_bytes(collective, ranks=3, size=1200)
    out = case.expected(1)
    assert case.wrong(1, out) == 0
    out[[0, 7, -1]] += 1
    assert case.wrong(1, out) == 3


def test_expected_results_by_hand() -> None:
    inputs = [Case("all_gather", 2, 5).contribution(rank) for rank in range(2)]
    np.testing.assert_array_equal(Case("all_gather", 2, 5).expected(0), np.concatenate(inputs))
    np.testing.assert_array_equal(Case("broadcast", 2, 5).expected(1), inputs[0])
    np.testing.assert_array_equal(Case("all_reduce", 2, 5).expected(1), inputs[0] + inputs[1])
    whole = [Case("all_to_all", 2, 5).contribution(rank) for rank in range(2)]
    second = [x[5:] for x in whole]
    np.testing.assert_array_equal(Case("all_to_all", 2, 5).expected(1), np.concatenate(second))
    np.testing.assert_array_equal(Case("reduce_scatter", 2, 5).expected(1), sum(second))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_results_of_many_ranks_are_checked_in_the_memory_of_some_buffers(collective: str) -> None:
    case = Case.of_bytes(collective, ranks=64, size=1 << 20)
    out = case.expected(1)
    tracemalloc.start()
    try:
        assert case.wrong(1, out) == 0
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 6 * case.size


def test_wrong_results_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_job: bench.Job) -> Iterator[bench.Row]:
        yield bench.Row.of(Case("all_reduce", 2, 256), seconds=1e-6, wrong=3)

    monkeypatch.setattr(collectives, "measured", measured)
    monkeypatch.setattr(sys, "argv", ["pccl", "bench", "all_reduce"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1


def test_sizes() -> None:
    texts = ["1", "512", "1K", "64m", "2G"]
    assert [bench.bytes_of(text) for text in texts] == [1, 512, 1024, 64 << 20, 2 << 30]
    assert bench.sizes_between(1024, 65535, 4) == (1024, 4096, 16384)
    assert Case.of_bytes("all_to_all", 4, 1).size == 16


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all_to_none"], "all_to_none"),
        (["--ranks", "two"], "--ranks"),
        (["--ranks", "0"], "ranks"),
        (["--min", "1Q"], "1Q"),
        (["--min", "0"], "size"),
        (["--min", "4M", "--max", "1M"], "4194304"),
        (["--factor", "1"], "factor"),
        (["--dtype", "bfloat16"], "bfloat16"),
        (["--dtype", "object"], "object"),
        (["--op", "mean"], "mean"),
        (["all_reduce", "--dtype", "complex64", "--op", "max"], "complex64"),
        (["--output", "/nowhere/rows.json"], "/nowhere"),
        (["broadcast", "--op", "max"], "--op max has no effect on broadcast"),
        (["--sizes", "1"], "--sizes"),
    ],
)
def test_a_bad_argument_is_one_line(arguments: list[str], words: str) -> None:
    done = run_bench(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("pccl bench: ")]
    assert line.startswith("pccl: ")
    assert words in line


@pytest.mark.multiproc
def test_a_rank_that_dies_ends_it_with_an_error() -> None:
    rows = bench.measured(bench.Job(sizes=(1024,) * 1000))
    assert dataclasses.asdict(next(rows))["wrong"] == 0
    multiprocessing.active_children()[0].kill()
    with pytest.raises(pccl.Error):
        list(rows)
    assert multiprocessing.active_children() == []


@pytest.mark.multiproc
def test_torch_is_not_needed() -> None:
    code = (
        "import sys; from pccl.bench import Job, run; rows = list(run(Job((64,))));"
        "print(len(rows), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.split() == ["5", "False"], done.stderr

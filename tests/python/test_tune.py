# SPDX-License-Identifier: Apache-2.0
"""``pccl tune``: what it keeps is what later groups choose by; never the times."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl._core import topology_hash
from pccl._internal.local_ranks import run_ranks
from pccl.bench import tune
from pccl.bench.cases import COLLECTIVES
from support import algorithms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KIB = 1024


def cell(block: int, **us: float) -> tune.Cell:
    return tune.Cell("all_reduce", 2, block, block, "a", us, us)


def lines_of(table: str) -> list[str]:
    return [line for line in table.splitlines() if not line.startswith("#")]


def choices_in(table: str) -> list[str]:
    return [line for line in lines_of(table) if line.startswith(COLLECTIVES)]


def test_a_change_of_algorithm_lies_between_the_sizes_that_were_measured() -> None:
    cells = [cell(1 * KIB, a=1, b=2), cell(4 * KIB, a=3, b=2), cell(16 * KIB, a=9, b=4)]
    assert choices_in(tune.table_of(cells)) == ["all_reduce 2 0 a", "all_reduce 2 2048 b"]


def test_noise_is_no_reason_to_change() -> None:
    cells = [cell(1 * KIB, a=1, b=2), cell(4 * KIB, a=3, b=2.95), cell(16 * KIB, a=9, b=12)]
    assert choices_in(tune.table_of(cells)) == ["all_reduce 2 0 a"]


def test_all_to_all_gets_one_algorithm_for_all_sizes() -> None:
    cells = [
        tune.Cell("all_to_all", 2, size, size, "a", us, us)
        for size, us in [(KIB, {"a": 1.0, "b": 1.1}), (64 * KIB, {"a": 30.0, "b": 20.0})]
    ]
    assert choices_in(tune.table_of(cells)) == ["all_to_all 2 0 b"]


def chosen(rank: int, rendezvous: str, send: Callable[[object], None], ranks: int) -> None:
    comm = pccl.Communicator(rank=rank, world_size=ranks, rendezvous=rendezvous)
    send({name: pccl.explain(name, 64 * KIB, comm).chosen.algorithm for name in COLLECTIVES})
    comm.barrier()


def choices(ranks: int) -> list[dict[str, str]]:
    return list(run_ranks(functools.partial(chosen, ranks=ranks), ranks))


def try_tune(
    file: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``pccl tune`` for two ranks, which keeps what it finds in a file."""
    return subprocess.run(
        [sys.executable, "-m", "pccl", "tune", "--ranks", "2", *arguments],
        env=os.environ | {"PCCL_TUNING_FILE": str(file)} | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def run_tune(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Do it, which must work."""
    done = try_tune(file, *arguments)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.multiproc
def test_all_ranks_choose_by_the_file_of_rank_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tuning.txt"
    monkeypatch.setenv("PCCL_TUNING_FILE", str(file))
    file.write_text("all_reduce 2 0 shm_one_shot\nall_reduce 2 32768 shm_direct\n")
    assert [found["all_reduce"] for found in choices(2)] == ["shm_direct"] * 2
    file.write_text("all_reduce 2 0 shm_two_shot\nall_reduce 2 99999 shm_one_shot\n")
    assert [found["all_reduce"] for found in choices(3)] == ["shm_two_shot"] * 3
    file.write_text("all_reduce 4 0 shm_two_shot\nall_reduce 2 0 no_such_algorithm\n")
    assert all(found["all_reduce"].startswith("shm_") for found in choices(2))


@pytest.mark.multiproc
def test_a_broken_file_is_named_and_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tuning.txt"
    monkeypatch.setenv("PCCL_TUNING_FILE", str(file))
    file.write_text("all_reduce 2 0 shm_one_shot\nall_reduce two\n")
    assert len(choices(2)) == 2
    assert f"{file} is ignored: line 2" in capfd.readouterr().err


def given_ring(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give groups of two a capsule for any size, and return what a tuning calls it."""
    ring = algorithms.ring.build("ring2", ranks=2)
    ring.save(folder / "ring2.capsule")
    monkeypatch.setenv("PCCL_CAPSULES", str(folder))
    return f"ring2@{ring.digest[:16]}"


@pytest.mark.multiproc
def test_a_capsule_that_was_measured_is_chosen_where_it_was_the_fastest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tuning.txt"
    monkeypatch.setenv("PCCL_TUNING_FILE", str(file))
    ring = given_ring(tmp_path, monkeypatch)
    assert [found["all_reduce"] for found in choices(2)] == ["ring2"] * 2
    file.write_text(f"capsule {ring}\nall_reduce 2 0 shm_one_shot\nall_reduce 2 99999 {ring}\n")
    assert [found["all_reduce"] for found in choices(2)] == ["shm_one_shot"] * 2
    file.write_text(f"capsule {ring}\nall_reduce 2 0 shm_one_shot\nall_reduce 2 32768 {ring}\n")
    assert [found["all_reduce"] for found in choices(2)] == ["ring2"] * 2


@pytest.mark.multiproc
def test_a_capsule_of_the_same_name_with_other_bytes_was_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tuning.txt"
    monkeypatch.setenv("PCCL_TUNING_FILE", str(file))
    given_ring(tmp_path, monkeypatch)
    other = f"ring2@{'0' * 16}"
    file.write_text(f"capsule {other}\nall_reduce 2 0 shm_one_shot\n")
    assert [found["all_reduce"] for found in choices(2)] == ["ring2"] * 2  # for sizes it states


@pytest.mark.multiproc
def test_what_another_machine_found_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tuning.txt"
    monkeypatch.setenv("PCCL_TUNING_FILE", str(file))
    line = "all_reduce 2 0 shm_direct\n"
    file.write_text(f"topology {topology_hash()}\n{line}")
    assert [found["all_reduce"] for found in choices(2)] == ["shm_direct"] * 2
    file.write_text(f"topology 0123456789abcdef\n{line}")
    assert "shm_direct" not in [found["all_reduce"] for found in choices(2)]
    assert "it was measured on topology 0123456789abcdef" in capfd.readouterr().err


@pytest.mark.multiproc
def test_the_command_measures_capsules_that_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tuning.txt"
    ring = given_ring(tmp_path, monkeypatch)
    done = run_tune(file, "--max", "1K", "--json", "--rounds", "1")
    cells = {cell["collective"]: cell["us"] for cell in json.loads(done.stdout)["cells"]}
    assert "ring2" in cells["all_reduce"]
    assert "ring2" not in cells["all_gather"]
    assert lines_of(file.read_text())[:2] == [f"topology {topology_hash()}", f"capsule {ring}"]


def test_the_table_calls_a_capsule_by_its_digest() -> None:
    measured = tune.Cell(
        "all_reduce", 2, KIB, KIB, "a", {"a": 2.0, "mine": 1.0}, {}, {"mine": "0" * 16}
    )
    name = f"mine@{'0' * 16}"
    assert choices_in(tune.table_of([measured])) == [f"all_reduce 2 0 {name}"]
    assert f"capsule {name}" in lines_of(tune.table_of([measured]))


@pytest.mark.multiproc
def test_the_command_keeps_what_it_found(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "tuning.txt"
    done = run_tune(file, "--max", "4K", "--rounds", "1")
    assert str(file) in done.stdout.splitlines()[-1]
    first = {tuple(line.split()[:3]) for line in lines_of(file.read_text())}
    assert {(name, "2", "0") for name in COLLECTIVES} <= first


@pytest.mark.multiproc
def test_a_dry_run_shows_predicted_beside_measured_for_links_too(tmp_path: Path) -> None:
    file = tmp_path / "tuning.txt"
    done = run_tune(file, "--max", "1K", "--rounds", "1", "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert found["kept_in"] is None
    assert not file.exists()
    assert [cell["collective"] for cell in found["cells"]] == list(COLLECTIVES)
    for cell in found["cells"]:
        assert cell["us"].keys() == cell["predicted_us"].keys()
        assert {"shm_one_shot", "one_shot"} <= cell["us"].keys()
        assert min(cell["predicted_us"].values()) > 0


@pytest.mark.multiproc
@pytest.mark.parametrize("way", ["environment", "option"])
def test_what_ranks_without_common_memory_take_is_not_kept(tmp_path: Path, way: str) -> None:
    """Groups that share memory would choose by it."""
    file = tmp_path / "tuning.txt"
    file.write_text("all_reduce 2 0 shm_direct\n")
    arguments = ("--max", "1K", "--rounds", "1")
    if way == "option":
        done = try_tune(file, *arguments, "--transports", "tcp")
    else:
        done = try_tune(file, *arguments, environment={"PCCL_TRANSPORTS": "tcp"})
    assert done.returncode != 0
    assert "these ranks share no memory" in done.stderr
    assert file.read_text() == "all_reduce 2 0 shm_direct\n"


@pytest.mark.multiproc
def test_a_dry_run_measures_over_other_transports_and_stores_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tuning.txt"
    arguments = ("--max", "1K", "--rounds", "1", "--dry-run", "--transports", "tcp")
    cells = json.loads(run_tune(file, *arguments, "--json").stdout)["cells"]
    assert not any(name.startswith("shm_") for cell in cells for name in cell["us"])
    assert not any(cell["shares_memory"] for cell in cells)
    assert run_tune(file, *arguments).stdout.splitlines()[-1] == "nothing is kept: a dry run"
    assert not file.exists()


def test_a_table_of_ranks_without_common_memory_is_refused() -> None:
    apart = dataclasses.replace(cell(KIB, a=1, b=2), shares_memory=False)
    with pytest.raises(ValueError, match="share no memory"):
        tune.table_of([apart])


def test_a_busy_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([(100, 200), (110, 300)])  # idle, all
    monkeypatch.setattr(tune, "_core_times", lambda: next(ticks))
    assert tune.busy_share(seconds=0) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"ranks": 1}, "1 ranks"), ({"rounds": 0}, "0 rounds"), ({"collectives": ("x",)}, "'x'")],
)
def test_a_job_that_makes_no_sense_is_refused(wrong: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        tune.Job(**({"ranks": 2} | wrong))  # type: ignore[arg-type]

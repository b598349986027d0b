# SPDX-License-Identifier: Apache-2.0
"""What steps cost on rank 0's machine is what all ranks choose by."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl._internal.local_ranks import run_ranks
from pccl.bench.cases import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24)
DIRECT_IS_CHEAP = "beat 0.1\ndirect_start 0.1\ndirect 0.001 0.001 0.001 0.001\n"
DIRECT_IS_DEAR = "beat 0.1\ndirect_start 900\ndirect 90 90 90 90\n"


def explained(files: list[str], rank: int, rendezvous: str, send: Callable[[object], None]) -> None:
    os.environ["PCCL_COSTS_FILE"] = files[rank]  # read at the first use, which is below
    comm = pccl.Communicator(rank=rank, world_size=len(files), rendezvous=rendezvous)
    every = [pccl.explain(name, size, comm) for name in COLLECTIVES for size in SIZES]
    ways = [(way.algorithm, way.seconds, way.is_chosen) for each in every for way in each.ways]
    # Where ranks know different lengths, shm_direct goes by what each pair knows.
    chosen = [each.chosen.algorithm for each in every if each.collective != "all_to_all"]
    send((rank, every[0].costs_from, ways, chosen))
    comm.barrier()


def by_rank(tmp_path: Path, *texts: str) -> list[tuple[int, str, list[object], list[str]]]:
    files = []
    for number, text in enumerate(texts):
        file = tmp_path / f"costs-{number}.txt"
        file.write_text(text)
        files.append(str(file))
    return sorted(run_ranks(functools.partial(explained, files), len(files)))


@pytest.mark.multiproc
def test_all_ranks_choose_by_the_costs_of_rank_0(tmp_path: Path) -> None:
    date = "date 2026-11-25T21:40:03Z\nload 1\n"
    cheap = by_rank(tmp_path, date + DIRECT_IS_CHEAP, DIRECT_IS_DEAR)
    dear = by_rank(tmp_path, DIRECT_IS_DEAR, DIRECT_IS_CHEAP)
    for found in (cheap, dear):
        assert found[0][1:] == found[1][1:]
    assert cheap[1][1].startswith("measured 2026-11-25T21:40:03Z, load 1")
    assert "shm_direct" in cheap[0][3]
    assert "shm_direct" not in dear[0][3]


@pytest.mark.multiproc
def test_a_broken_file_of_the_user_is_named_and_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert by_rank(tmp_path, "not costs\n", "")[0][1] != ""
    assert "costs-0.txt is ignored: line 1" in capfd.readouterr().err
    assert (tmp_path / "costs-0.txt").read_text() == "not costs\n"


@pytest.mark.multiproc
def test_no_folder_is_made_for_a_file_that_the_user_named(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "costs.txt"
    done = subprocess.run(
        [sys.executable, "-c", "from pccl._core import *; print(machine_costs()[0])"],
        env=os.environ | {"PCCL_COSTS_FILE": str(file)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("measured 20")
    assert "this machine's costs are not kept: " in done.stderr
    assert f"{file}: No such file or directory" in done.stderr
    assert not file.parent.exists()


@pytest.mark.multiproc
def test_the_first_group_measures_and_later_ones_read(tmp_path: Path) -> None:
    # The last of the tries that a busy machine gets is kept for good.
    texts = []
    for _ in range(4):
        script = "from pccl._core import *; print(machine_costs()[0]); print(costs_path())"
        env = {name: value for name, value in os.environ.items() if name != "PCCL_COSTS_FILE"}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=env | {"XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        source, path = done.stdout.splitlines()
        assert source.startswith("measured 20")
        assert path.startswith(str(tmp_path / "pccl" / "costs-"))
        texts.append(Path(path).read_text(encoding="ascii"))
    assert texts[2] == texts[3]
    assert "boot " in texts[0]

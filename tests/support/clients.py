# SPDX-License-Identifier: Apache-2.0
"""Run a client's program on PCCL and on Gloo, and compare what its ranks report.

A program takes the backend's name and the number of ranks as its first arguments, and each rank
calls ``report`` of ``tests/clients/programs/report.py`` once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).resolve().parents[1] / "clients" / "programs"
MARK = "FOUND "
PATIENCE_S = 400.0
WORLD_SIZES = pytest.mark.parametrize("world_size", [2, 4])


@dataclass(frozen=True)
class Found:
    """What one rank reported."""

    rank: int
    world_size: int
    backend: str
    calls: int  # operations that PCCL has completed
    values: list[float]


def torchrun(world_size: int) -> tuple[str, ...]:
    """Return the arguments of Python, before the program, that start each rank."""
    return ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size))


def reported(text: str) -> list[Found]:
    """Return the results in a program's output; several ranks may print into one line."""
    decoder = json.JSONDecoder()
    parts: list[dict[str, Any]] = [decoder.raw_decode(part)[0] for part in text.split(MARK)[1:]]
    return sorted((Found(**part) for part in parts), key=lambda each: each.rank)


def output_of(arguments: Sequence[str]) -> str:
    """Run Python with arguments; end its whole session if it takes too long."""
    paths = [str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    with (
        tempfile.TemporaryDirectory() as folder,  # clients write into the present folder
        subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            out, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, errors = process.communicate()
            pytest.fail(f"it did not end within {PATIENCE_S:g} s\n{out[-2000:]}\n{errors[-4000:]}")
    assert process.returncode == 0, f"{out[-2000:]}\n{errors[-6000:]}"
    return out


def assert_as_on_gloo(
    program: Path | str,
    world_size: int,
    *,
    launcher: Sequence[str] = (),
    arguments: Sequence[str] = (),
    on_gloo: Sequence[str] | None = None,
    lost: int = 0,
) -> None:
    """Require that a program runs on PCCL, with the numbers that Gloo gives.

    ``lost`` ranks, the last ones, end on the way and report nothing. ``on_gloo`` are the arguments
    on Gloo if they differ.
    """
    run = [*launcher, str(PROGRAMS / program)]
    reference = arguments if on_gloo is None else on_gloo
    ours = reported(output_of([*run, "pccl", str(world_size), *arguments]))
    theirs = reported(output_of([*run, "gloo", str(world_size), *reference]))
    expected = [(rank, world_size) for rank in range(world_size - lost)]
    for found in (ours, theirs):
        assert [(each.rank, each.world_size) for each in found] == expected
    for mine, reference in zip(ours, theirs, strict=True):
        assert "pccl" in mine.backend
        assert "gloo" in reference.backend
        assert mine.calls > 0, "no operation ran on PCCL"
        assert mine.values, "there is no value to compare"
        assert mine.values == pytest.approx(reference.values, rel=1e-5, abs=1e-6)

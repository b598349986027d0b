# SPDX-License-Identifier: Apache-2.0
"""``pccl bench --gpus``: what it checks, on GPUs that are host memory; and where there are none."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pccl
from pccl import topology
from pccl.bench import gpus
from pccl.bench.cases import COLLECTIVES, Case


class Memory:
    """As ``_core.DeviceMemory``, in host memory."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = np.zeros(nbytes, np.uint8)
        self.address = self.bytes.ctypes.data

    def write(self, source: np.ndarray[Any, Any]) -> None:
        self.bytes[: source.nbytes] = source.view(np.uint8)

    def read(self, target: np.ndarray[Any, Any]) -> None:
        target.view(np.uint8)[:] = self.bytes[: target.nbytes]

    def wait(self) -> None:
        pass


class Group:
    """As ``_core.DeviceGroup``, by way of a communicator; some elements come out wrong."""

    def __init__(self, comm: pccl.Communicator, wrong: int) -> None:
        self.comm = comm
        self.wrong = wrong

    def launch(
        self,
        collective: str,
        *,
        input: int,
        output: int,
        count: int,
        dtype: str,
        op: str,
        root: int,
    ) -> None:
        case = Case(collective, self.comm.world_size, count, dtype, op)  # type: ignore[arg-type]
        x = at(input, case.input_elements, dtype)
        out = at(output, case.output_elements, dtype)
        calls = {
            "all_reduce": lambda: self.comm.all_reduce(out, case.op),
            "all_gather": lambda: self.comm.all_gather(out, x),
            "reduce_scatter": lambda: self.comm.reduce_scatter(out, x, case.op),
            "broadcast": lambda: self.comm.broadcast(out, root),
            "all_to_all": lambda: self.comm.all_to_all(out, x),
        }
        calls[collective]()
        if self.comm.rank == 0:
            out[: self.wrong] += 1

    def check(self) -> None:
        pass


def at(address: int, elements: int, dtype: str) -> np.ndarray[Any, Any]:
    nbytes = elements * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype)


def row_of(comm: pccl.Communicator, case: Case, wrong: int) -> Any:
    buffers = gpus.Buffers(Memory(case.size), Memory(case.size))  # type: ignore[arg-type]
    return gpus.measure(comm, Group(comm, wrong), buffers, case)  # type: ignore[arg-type]


@pytest.mark.multiproc
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_each_is_checked_and_timed(collective: str) -> None:
    case = Case.of_bytes(collective, 3, 4800)
    rows = pccl.run(row_of, case, 0, ranks=3)
    assert {row.wrong for row in rows} == {0}
    assert {(row.size, row.count) for row in rows} == {(case.size, case.count)}
    assert all(row.algbw == pytest.approx(row.size / row.time_us / 1e3) for row in rows)


@pytest.mark.multiproc
def test_what_is_wrong_is_counted() -> None:
    assert [
        row.wrong for row in pccl.run(row_of, Case.of_bytes("all_to_all", 2, 4096), 5, ranks=2)
    ] == [
        5,
        5,
    ]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pccl", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--gpus", "0,x"], "no list of GPUs: '0,x'"),
        (["--gpus", ""], "no list of GPUs: ''"),
        (["--gpus", "1,1"], "a GPU is named twice in '1,1'"),
        (["--gpus", "0,1,2,3,4,5,6,7,8"], "9 GPUs; a group has 8 at most"),
        (["--gpus", "0,1", "--ranks", "2"], "--ranks has no effect with --gpus"),
    ],
)
def test_wrong_lists_are_refused_in_one_line(arguments: list[str], reason: str) -> None:
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"pccl: {reason}")


@pytest.mark.multiproc
def test_on_this_machine() -> None:
    """Right sums where there are GPUs, else one line that says that there are none."""
    done = bench("all_reduce", "--gpus", "0,1", "--min", "256K", "--max", "1M", "--json")
    if len(topology.detect().gpus) >= 2 and done.returncode == 0:
        found = json.loads(done.stdout)
        assert found["gpus"] == [0, 1]
        assert [(row["size"], row["wrong"]) for row in found["rows"]] == [
            (1 << 18, 0),
            (1 << 20, 0),
        ]
        return
    assert (done.returncode, done.stdout) == (2, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("pccl: ")
    assert any(word in line for word in ("CUDA", "GPU", "NVIDIA driver"))

# SPDX-License-Identifier: Apache-2.0
"""``pccl.run`` and ``pccl run``: functions and scripts as ranks of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pccl
from pccl.launch import processes as rank_processes


def total(comm: pccl.Communicator, values: list[float], factor: float = 1.0) -> float:
    x = np.array([values[comm.rank]])
    comm.all_reduce(x)
    return float(x[0] * factor)


def test_results_come_by_rank() -> None:
    assert pccl.run(lambda comm: comm.rank**2, ranks=3) == [0, 1, 4]


def test_arguments_are_the_same_for_all() -> None:
    assert pccl.run(total, [1.0, 2.0, 4.0], ranks=3, factor=10.0) == [70.0] * 3


def test_a_function_brings_what_it_uses() -> None:
    offset = 7

    def shifted(comm: pccl.Communicator) -> np.ndarray[Any, Any]:
        x = np.full(3, comm.rank + offset)
        comm.all_reduce(x)
        return x

    for x in pccl.run(shifted, ranks=2):
        assert np.array_equal(x, [15, 15, 15])


def fail_on_rank_1(comm: pccl.Communicator) -> None:
    if comm.rank == 1:
        raise ValueError("no such shape")
    comm.all_reduce(np.ones(4))


def test_the_rank_that_failed_is_named_with_its_traceback() -> None:
    with pytest.raises(pccl.launch.RankError) as raised:
        pccl.run(fail_on_rank_1, ranks=3)
    assert raised.value.rank == 1
    text = str(raised.value)
    assert text.startswith("rank 1 raised ValueError: no such shape\n")
    assert 'raise ValueError("no such shape")' in text
    assert "in fail_on_rank_1" in text


def test_a_function_of_a_script_fails_at_its_file_and_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import pccl\n"
        "def step(comm):\n"
        "    return (lambda: 1 // comm.rank)()\n"
        "if __name__ == '__main__':\n"
        "    pccl.run(step, ranks=2)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert "rank 0 raised ZeroDivisionError" in done.stderr
    for place in ("step", "<lambda>"):
        output = f'  File "{script}", line 3, in {place}\n    return (lambda: 1 // comm.rank)()\n'
        assert output in done.stderr


def test_a_rank_that_just_ends_is_reported() -> None:
    def end(comm: pccl.Communicator) -> None:
        if comm.rank == 0:
            os._exit(3)
        comm.barrier()

    with pytest.raises(pccl.launch.RankError, match="rank 0 ended with exit code 3") as raised:
        pccl.run(end, ranks=2)
    assert raised.value.rank == 0


def test_a_rank_that_hangs_ends_with_the_others(tmp_path: Path) -> None:
    def hang(comm: pccl.Communicator) -> None:
        (tmp_path / str(comm.rank)).write_text(str(os.getpid()))
        comm.barrier()
        if comm.rank == 1:
            raise RuntimeError("enough")
        time.sleep(600)

    began = time.monotonic()
    with pytest.raises(pccl.launch.RankError, match="rank 1 raised RuntimeError: enough"):
        pccl.run(hang, ranks=2)
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "0").read_text()), 0)


@pytest.mark.slow
def test_the_timeout_names_the_running_ranks() -> None:
    def sleep(comm: pccl.Communicator) -> None:
        time.sleep(600 if comm.rank == 1 else 0)

    with pytest.raises(pccl.TimeoutError, match=r"ranks 1 still ran after 20\.0 s"):
        pccl.run(sleep, ranks=2, timeout=20.0)  # rank 0 has to begin, and end


@pytest.mark.parametrize("ranks", [0, -1])
def test_no_ranks_are_none(ranks: int) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="start 1 or more"):
        pccl.run(total, [1.0], ranks=ranks)


def test_output_comes_by_rank(capsys: pytest.CaptureFixture[str]) -> None:
    def speak(comm: pccl.Communicator) -> None:
        print("hello from", comm.rank)
        print("trouble on", comm.rank, file=sys.stderr)

    pccl.run(speak, ranks=2)
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[0] hello from 0", "[1] hello from 1"]
    troubles = [
        line for line in err.splitlines() if " has waited " not in line
    ]  # as on busy machines
    assert sorted(troubles) == ["[0] trouble on 0", "[1] trouble on 1"]


def test_ranks_of_torch_find_their_way() -> None:
    pytest.importorskip("torch")

    def gather(comm: pccl.Communicator) -> float:
        import torch
        import torch.distributed as dist

        dist.init_process_group("pccl")
        x = torch.ones(3) * (comm.rank + 1)
        dist.all_reduce(x)
        dist.destroy_process_group()
        return x.sum().item()

    assert pccl.run(gather, ranks=2) == [9.0, 9.0]


def test_the_port_of_the_ranks_goes_to_nobody_else() -> None:
    with rank_processes._held_port() as held, socket.socket() as other, socket.socket() as store:
        address = held.getsockname()
        with pytest.raises(OSError, match="in use"):
            other.bind(address)
        store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        store.bind(address)
        store.listen()
        with socket.create_connection(address):
            store.accept()[0].close()


SCRIPT = """
import sys

import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://")
x = np.ones(4)
comm.all_reduce(x)
print("sum", x[0], *sys.argv[1:])
sys.exit(int(sys.argv[1]) if comm.rank == 1 else 0)
"""
PCCL_RUN = [sys.executable, "-m", "pccl", "run"]


@pytest.mark.parametrize("code", [0, 5])
def test_a_script_is_run_as_ranks(tmp_path: Path, code: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [*PCCL_RUN, "-n", "3", str(script), str(code), "-n", "--own"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    expected = [f"[{rank}] sum 3.0 {code} -n --own" for rank in range(3)]
    assert sorted(done.stdout.splitlines()) == expected


def processes_of(marker: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words and b"run" not in words:
            found.append(int(process.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_rank_outlives_the_starter(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    starter = subprocess.Popen(
        [*PCCL_RUN, "-n", "2", str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert starter.stdout is not None
    for _ in range(2):
        assert starter.stdout.readline().endswith(b"up\n")
    assert len(processes_of(str(script))) == 2
    starter.send_signal(how)
    _, err = starter.communicate(timeout=30)
    assert starter.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), err
    own = [line for line in err.splitlines() if not line.startswith(b"[")]
    assert not any(b"Traceback" in line for line in own)
    deadline = time.monotonic() + 10
    while processes_of(str(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(str(script)) == []

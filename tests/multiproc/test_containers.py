# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers that lack what hosts have: each works, or one line says what to change."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PATIENCE_S = 60
# Sums of short and long arrays, which take different ways.
RANK = """
import os, sys
sys.path.insert(0, sys.argv[1])
from support.refused_calls import refuse
for call in filter(None, sys.argv[2].split(",")):
    refuse(call)
import numpy as np, pccl
comm = pccl.Communicator(rendezvous="env://")
for count in (2, 1 << 20):
    x = np.ones(count, np.float32)
    comm.all_reduce(x)
    assert (x == comm.world_size).all()
print("summed")
"""
SUMMED = ["[0] summed", "[1] summed"]


def run_job(
    folder: Path, *, prefix: str = "", before: str = "true", refused: str = "", **variables: str
) -> tuple[list[str], str]:
    """Run two ranks; return the lines that they print, sorted, and their errors.

    ``prefix`` are words of a command that starts a shell, which runs ``before`` first.
    """
    script = folder / "rank.py"
    script.write_text(RANK)
    words = [sys.executable, "-m", "pccl", "run", "-n", "2", str(script), str(TESTS), refused]
    done = subprocess.run(
        [*shlex.split(prefix), "sh", "-c", f"{before} && exec {shlex.join(words)}"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return sorted(done.stdout.splitlines()), done.stderr


def need(command: str) -> None:
    """Skip the test where this machine does not allow the namespaces of ``command``."""
    words = [*shlex.split(command), "true"]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not here")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not allow {command}: {done.stderr.strip()}")


@pytest.mark.parametrize(
    ("prefix", "before"),
    [
        pytest.param("unshare -m", "mount -t tmpfs -o size=1m tmpfs /dev/shm", id="small-shm"),
        pytest.param("prlimit --memlock=0", "true", id="no-memlock"),
        pytest.param("unshare -U", "true", id="user-namespace-without-map"),
        pytest.param("unshare -U -r", "true", id="root-of-user-namespace"),
        pytest.param("unshare -p -f --mount-proc", "true", id="pid-namespace"),
        pytest.param("unshare -m", "mount -t tmpfs tmpfs /sys", id="no-sys"),
        pytest.param("unshare -u", "hostname no-such-host-7", id="host-name-without-address"),
    ],
)
def test_a_narrow_container_works(tmp_path: Path, prefix: str, before: str) -> None:
    need(prefix)
    lines, errors = run_job(tmp_path, prefix=prefix, before=before)
    assert lines == SUMMED, errors
    assert "warning" not in errors


@pytest.mark.parametrize("calls", ["process_vm_readv", "membarrier", "process_vm_readv,membarrier"])
def test_a_refused_system_call_is_done_without(tmp_path: Path, calls: str) -> None:
    lines, errors = run_job(tmp_path, refused=calls)
    assert lines == SUMMED, errors
    assert "warning" not in errors


def test_a_home_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    need("unshare -m")
    home = tmp_path / "home"
    home.mkdir()
    before = f"mount -t tmpfs -o ro tmpfs {shlex.quote(str(home))}"
    lines, errors = run_job(tmp_path, prefix="unshare -m", before=before, HOME=str(home))
    assert lines == SUMMED, errors


def test_without_memory_files_a_line_says_what_to_allow(tmp_path: Path) -> None:
    lines, errors = run_job(tmp_path, refused="memfd_create")
    assert [line for line in lines if "warning" not in line] == SUMMED, errors
    warnings = [line for line in [*lines, *errors.splitlines()] if "no transport shm" in line]
    assert len(warnings) == 2, errors
    for warning in warnings:
        assert warning.endswith("let the seccomp profile of this container allow memfd_create")


def test_without_proc_sys_a_line_says_what_to_mount(tmp_path: Path) -> None:
    need("unshare -m")
    lines, errors = run_job(tmp_path, prefix="unshare -m", before="mount -t tmpfs tmpfs /proc/sys")
    text = "\n".join([*lines, errors])
    assert "cannot read /proc/sys/kernel/random/boot_id: No such file or directory" in text
    assert "let this container read /proc/sys" in text

# SPDX-License-Identifier: Apache-2.0
"""NIXL's agents over RDMA devices of a virtual machine, by libplugin_PCCL.so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pccl
from pccl.cli import nixl
from support import rdma

rdma.need_devices()

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests/nixl"
SOURCES = ROOT / "build/nixl"
WHEEL = ROOT / "build/rdma/nixl"
PLUGIN = Path(pccl.__file__).parent / nixl.PLUGIN
BLOCKS_OF_READ = 3 * 32 * 4096  # bytes that the scenario `read` moves


def run(*command: object, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(str(part) for part in command)],
        env={**os.environ, **rdma.over_verbs(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def path() -> str:
    """Return a PYTHONPATH with NIXL, which has our plugin."""
    if not PLUGIN.exists():
        pytest.skip("built without NIXL's headers, so there is no plugin: tools/setup_nixl.sh")
    if not WHEEL.exists():
        pytest.skip(f"NIXL's wheel is not in {WHEEL.relative_to(ROOT)}: tools/setup_rdma.sh")
    path = os.pathsep.join([str(WHEEL), str(Path(pccl.__file__).parents[1])])
    done = run("-m", "pccl", "nixl", "install", path=path)
    assert done.returncode == 0, done.stderr
    return path


def test_agents_read_write_and_notify(path: str) -> None:
    before = rdma.sent_packets("rxe0")
    done = run(TESTS / "agents.py", "PCCL", "read,write,notifications", path=path)
    assert done.returncode == 0, f"{done.stdout[-1000:]} {done.stderr[-3000:]}"
    sent = rdma.sent_packets("rxe0") - before
    assert sent >= BLOCKS_OF_READ // rdma.path_mtu("rxe0") // len(rdma.DEVICES)


def test_two_agents_of_nixl_s_own_test(path: str) -> None:
    if not SOURCES.exists():
        pytest.skip("NIXL's sources are not in build/nixl: tools/setup_nixl.sh")
    before = rdma.sent_packets("rxe0")
    done = run(TESTS / "upstream.py", SOURCES, "PCCL", "-k", "test_agent", path=path)
    assert done.returncode == 0, f"{done.stdout[-3000:]} {done.stderr[-1000:]}"
    assert "1 passed" in done.stdout
    assert rdma.sent_packets("rxe0") > before

# SPDX-License-Identifier: Apache-2.0
"""NIXL's agents with memory of GPUs, over libplugin_PCCL.so."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.gpu.ranks import GPUS

import pccl
from pccl.cli import nixl

pytestmark = pytest.mark.gpu
PLUGIN = Path(pccl.__file__).parent / nixl.PLUGIN
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)
if not any(find_spec(package.replace("-", "_")) for package in nixl.PACKAGES):
    pytest.skip(f"none of {', '.join(nixl.PACKAGES)} is installed", allow_module_level=True)
if not PLUGIN.exists():
    pytest.skip("built without PCCL_NIXL_INCLUDE: there is no plugin", allow_module_level=True)

AGENTS = Path(__file__).parents[1] / "nixl" / "agents.py"


@pytest.mark.parametrize("gpus", sorted({1, min(GPUS, 2)}))
@pytest.mark.parametrize("scenario", ["read", "write", "local", "threads", "death"])
def test_agents_move_memory_of_gpus(scenario: str, gpus: int) -> None:
    environment = {**os.environ, "AGENT_GPUS": str(gpus), "NIXL_PLUGIN_DIR": str(PLUGIN.parent)}
    done = subprocess.run(
        [sys.executable, AGENTS, "PCCL", scenario],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]

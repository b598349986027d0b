# SPDX-License-Identifier: Apache-2.0
"""The runs of clients.toml, at 2 and 4 ranks: on PCCL, and with the numbers that Gloo gives."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.clients import WORLD_SIZES, assert_as_on_gloo, torchrun

RUNS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("clients.toml").read_text()
)[os.environ["PCCL_TEST_CLIENT"]]["runs"]


@WORLD_SIZES
@pytest.mark.parametrize("name", RUNS)
def test_run(name: str, world_size: int) -> None:
    run = RUNS[name]
    assert_as_on_gloo(
        run["program"],
        world_size,
        launcher=() if run.get("launcher") == "script" else torchrun(world_size),
        arguments=run.get("arguments", ()),
        on_gloo=run.get("on_gloo"),
        lost=run.get("lost", 0),
    )

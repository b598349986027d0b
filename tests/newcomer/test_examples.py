# SPDX-License-Identifier: Apache-2.0
"""The examples in every --help of ``pccl``, and those of docs, pasted into a shell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.markdown import blocks_of

if TYPE_CHECKING:
    from support.wheel import Environment

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

COMMANDS = ["", "info", "run", "bench", "tune", "topo", "debug", "phase"]
DOCS = Path(__file__).resolve().parents[2] / "docs"
RANK = "import os; print(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"
CLUSTER = {
    "devices": 4 * [{}],
    "phases": {"ring": {"links": "ring"}, "pairs": {"links": [[0, 1], [2, 3]], "duplex": True}},
}
RECORD = {"version": 1, "wall_ms": 1, "steady_ns": 1, "entries": []} | {
    "groups": [
        {"id": 1, "name": "world", "rank": 0, "size": 1, "global_ranks": [0], "device": "cpu"}
    ]
}


def run_lines(fresh: Environment, lines: list[str], folder: Path) -> None:
    assert lines
    (folder / "flight").mkdir()
    (folder / "flight" / "flight-here-1.json").write_text(json.dumps(RECORD))
    (folder / "cluster.json").write_text(json.dumps(CLUSTER))
    (folder / "train.py").write_text(RANK)
    (folder / "package").mkdir()
    (folder / "package" / "train.py").write_text(RANK)
    for line in lines:
        done = fresh.run("bash", "-c", line, cwd=folder, XDG_CACHE_HOME=str(folder))
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or ">" in line, line


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_help(command: str, fresh: Environment, tmp_path: Path) -> None:
    text = fresh.run("pccl", *command.split(), "--help", cwd=tmp_path).stdout
    examples = text.partition("Examples:")[2]
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    # Once is enough of what takes long, --dry-run below does the same; tests/gpu has GPUs.
    left_out = r"pccl tune +#|pccl bench --gpus"
    run_lines(fresh, [line for line in lines if not re.match(left_out, line)], tmp_path)


def test_examples_of_the_page_on_topologies(fresh: Environment, tmp_path: Path) -> None:
    lines = [
        line
        for block in blocks_of(DOCS / "guide" / "topology.md", "sh")
        for line in block.text.splitlines()
        if "--meet" not in line  # two hosts: tests/multiproc has them
    ]
    fresh.run("pccl", "topo", "--example", "dgx2", "--xml", "topo.xml", cwd=tmp_path)
    run_lines(fresh, lines, tmp_path)

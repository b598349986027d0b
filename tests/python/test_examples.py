# SPDX-License-Identifier: Apache-2.0
"""The folder of examples: its index, and what a program tells who starts it by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_index_names_each_example_once() -> None:
    index = (EXAMPLES / "README.md").read_text()
    files = sorted(
        path.name for path in EXAMPLES.iterdir() if path.suffix in (".cc", ".ipynb", ".py")
    )
    assert sorted(re.findall(r"^\| \[(.+?)\]\(\1\) \|", index, re.MULTILINE)) == files


@pytest.mark.parametrize("name", ["train_ddp.py", "train_phases.py"])
def test_a_training_without_a_launcher_prints_how_to_start_it(name: str) -> None:
    for needed in ("torch", "sklearn", "rich"):
        pytest.importorskip(needed)
    place = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        env={key: value for key, value in os.environ.items() if key not in place},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert re.fullmatch(
        rf"this trains as ranks: pccl run -n \d examples/{name}, or by torchrun\n", done.stderr
    )

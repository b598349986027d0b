# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/guide/frameworks.md, beside Gloo: the same weights, and the right backend.

They run where Lightning and accelerate are installed, which the tools of this project do not bring.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.markdown import blocks_of

pytestmark = pytest.mark.multiproc
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "frameworks.md"
PATIENCE_S = 180

DATA = """
import json
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
"""
FOR_LIGHTNING = """
import lightning

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        self.backend = dist.get_backend()
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

model = Model()
"""
AFTER_LIGHTNING = """
weights = model.layer.weight.tolist()
found = [trainer.global_rank, trainer.world_size, model.backend, weights]
print("FOUND", json.dumps(found), flush=True)
"""
FOR_ACCELERATE = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
AFTER_ACCELERATE = """
for _ in range(2):
    for source, target in loader:
        loss = torch.nn.functional.mse_loss(model(source), target)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
found = [accelerator.process_index, accelerator.num_processes, dist.get_backend()]
print("FOUND", json.dumps([*found, model.module.weight.tolist()]), flush=True)
dist.destroy_process_group()
"""


def recipe(word: str) -> str:
    (block,) = [block for block in blocks_of(PAGE, "python") if word in block.text]
    assert '"pccl"' in block.text
    return block.text


def needs(package: str) -> pytest.MarkDecorator:
    is_missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(is_missing, reason=f"{package} is not installed")


def found_by(program: str, folder: Path, *launcher: str) -> list[Any]:
    """Run a program on two ranks; return what they print, by rank."""
    file = folder / "train.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, *launcher, str(file)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    # Two ranks may print into one line.
    parts = done.stdout.split("FOUND ")[1:]
    return sorted(json.JSONDecoder().raw_decode(part)[0] for part in parts)


def agree_with_gloo(program: str, folder: Path, *launcher: str) -> None:
    first, second = found_by(program, folder, *launcher)
    assert (first[:3], second[:3]) == ([0, 2, "pccl"], [1, 2, "pccl"])
    theirs = found_by(program.replace('"pccl"', '"gloo"'), folder, *launcher)
    assert theirs[0][:3] == [0, 2, "gloo"]
    for ours in (first[3], second[3]):
        assert ours[0] == pytest.approx(theirs[0][3][0], rel=1e-5)


@needs("lightning")
def test_lightning_trains_as_on_gloo(tmp_path: Path) -> None:
    program = DATA + FOR_LIGHTNING + recipe("DDPStrategy") + AFTER_LIGHTNING
    agree_with_gloo(program, tmp_path)


@needs("accelerate")
def test_accelerate_trains_as_on_gloo(tmp_path: Path) -> None:
    program = DATA + FOR_ACCELERATE + recipe("accelerate import") + AFTER_ACCELERATE
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    agree_with_gloo(program, tmp_path, *launcher)

# SPDX-License-Identifier: Apache-2.0
"""The block of docs/guide/frameworks.md for accelerate beside Gloo, and what accelerate refuses."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from clients.recipes import program, recipe
from support.clients import WORLD_SIZES, assert_as_on_gloo, torchrun

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
AFTER = """
values = []
for _ in range(2):
    for source, target in loader:
        loss = torch.nn.functional.mse_loss(model(source), target)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        values += accelerator.gather(loss.detach()).flatten()
rank = accelerator.process_index
from accelerate.utils import broadcast_object_list, gather_object
values += gather_object([rank])
values += broadcast_object_list([rank + 5], from_process=1)
values += accelerator.gather_for_metrics(torch.arange(3) + rank)
values += accelerator.reduce(torch.tensor([rank + 1.0]), "mean")
values += accelerator.pad_across_processes(torch.ones(rank + 1))
values += model.module.weight.detach().flatten()
report(rank, accelerator.num_processes, dist.get_backend(), values)
dist.destroy_process_group()
"""
REFUSED = """
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="pccl")])
"""


@WORLD_SIZES
def test_recipe(tmp_path: Path, world_size: int) -> None:
    file = program(tmp_path, MODEL, recipe("accelerate import"), AFTER)
    assert_as_on_gloo(file, world_size, launcher=torchrun(world_size))


def test_name_is_refused_on_cpus(tmp_path: Path) -> None:
    file = tmp_path / "refused.py"
    file.write_text(REFUSED)
    done = subprocess.run(
        [sys.executable, *torchrun(2), str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert "Your assigned backend pccl is not available, please use gloo" in done.stderr

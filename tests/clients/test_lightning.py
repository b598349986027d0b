# SPDX-License-Identifier: Apache-2.0
"""The block of docs/guide/frameworks.md for Lightning, and its other strategies, beside Gloo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.recipes import program, recipe
from support.clients import WORLD_SIZES, assert_as_on_gloo

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """
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
AFTER = """
weights = model.layer.weight.detach().flatten()
report(trainer.global_rank, trainer.world_size, model.backend, weights)
"""


@WORLD_SIZES
def test_recipe(tmp_path: Path, world_size: int) -> None:
    file = program(tmp_path, MODEL, recipe("DDPStrategy"), AFTER)
    assert_as_on_gloo(file, world_size)


@WORLD_SIZES
def test_spawned_processes(tmp_path: Path, world_size: int) -> None:
    text = recipe("DDPStrategy").replace(
        "process_group_backend=", 'start_method="spawn", process_group_backend='
    )
    reporting = MODEL.replace("        return torch.nn", SPAWNED, 1)
    body = "".join(f"    {line}\n" for line in text.splitlines())
    file = program(tmp_path, reporting, f'if __name__ == "__main__":\n{body}')
    assert_as_on_gloo(file, world_size)


# Spawned processes share no object with the first one: they report in the last step.
SPAWNED = """\
        if self.trainer.current_epoch == 1 and self.trainer.is_last_batch:
            weights = self.layer.weight.detach().flatten()
            report(self.trainer.global_rank, self.trainer.world_size, self.backend, weights)
        return torch.nn"""

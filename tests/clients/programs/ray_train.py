# SPDX-License-Identifier: Apache-2.0
"""Ray Train's TorchTrainer trains by DDP; its TorchConfig has the backend's name."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model
from report import found, show


def train(config: dict[str, Any]) -> None:
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = prepare_model(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    samples = torch.Generator().manual_seed(100 + rank)
    losses = []
    for _ in range(5):
        source = torch.randn(8, 16, generator=samples)
        loss = torch.nn.functional.mse_loss(model(source), source.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = model.module.weight.detach().flatten()
    result = found(rank, dist.get_world_size(), dist.get_backend(), [*losses, *weights])
    (Path(config["folder"]) / f"{rank}.json").write_text(json.dumps(result))
    ray.train.report({"loss": losses[-1]})


def main() -> None:
    backend, world_size = sys.argv[1], int(sys.argv[2])
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "180")  # 60 on a busy machine
    ray.init(num_cpus=world_size + 1, include_dashboard=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            train,
            train_loop_config={"folder": folder},
            scaling_config=ray.train.ScalingConfig(num_workers=world_size),
            torch_config=TorchConfig(backend=backend),
            run_config=ray.train.RunConfig(storage_path=folder),
        )
        trainer.fit()
        for file in Path(folder).glob("*.json"):
            show(json.loads(file.read_text()))
    ray.shutdown()


if __name__ == "__main__":
    main()

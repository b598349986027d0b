# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed trains with one stage of ZeRO, saves a checkpoint, changes the model and loads it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from report import report

backend, stage = sys.argv[1], int(sys.argv[3])
deepspeed.init_distributed(dist_backend=backend)
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
engine, *_ = deepspeed.initialize(
    model=model,
    model_parameters=model.parameters(),
    config={
        "train_micro_batch_size_per_gpu": 8,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
        "gradient_clipping": 1.0,
    },
)
rank, world_size = dist.get_rank(), dist.get_world_size()
samples = torch.Generator().manual_seed(100 + rank)


def step() -> float:
    source = torch.randn(8, 16, generator=samples)
    loss = torch.nn.functional.mse_loss(engine(source), source.sum(1, keepdim=True))
    engine.backward(loss)
    engine.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return float(total) / world_size


losses = [step() for _ in range(5)]
folders = [tempfile.mkdtemp() if rank == 0 else ""]
dist.broadcast_object_list(folders)
engine.save_checkpoint(folders[0], tag="five")
state = samples.get_state()
losses += [step() for _ in range(2)]
engine.load_checkpoint(folders[0], tag="five")
samples.set_state(state)
again = [step() for _ in range(2)]
assert again == losses[-2:], (again, losses)
assert (Path(folders[0]) / "five").is_dir()
report(rank, world_size, dist.get_backend(), losses)
dist.destroy_process_group()

# SPDX-License-Identifier: Apache-2.0
"""A small transformer trained by DDP and by FSDP2: losses as with NCCL."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet
from tests.gpu.ranks import GPUS, run_gpu_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

pytestmark = pytest.mark.gpu
if GPUS < 2:
    pytest.skip(f"NCCL needs 2 GPUs, this machine has {GPUS}", allow_module_level=True)

STEPS = 12
VOCABULARY, WIDTH, LENGTH, BATCH = 101, 128, 32, 8


class Transformer(nn.Module):
    """Two layers that predict the next symbol."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
            for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        x = self.embedding(symbols)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def distributed(model: Transformer, how: str, rank: int, world_size: int) -> nn.Module:
    if how == "ddp":
        return nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=0.2)
    mesh = init_device_mesh("cuda", (world_size,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(rank: int, world_size: int, store: Any, backend: str, how: str) -> list[float]:
    meet(rank, world_size, store, backend=backend)
    torch.manual_seed(0)
    model = distributed(Transformer().cuda(), how, rank, world_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    torch.manual_seed(rank + 1)
    losses = []
    for _ in range(STEPS):
        symbols = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), device="cuda")
        scores = model(symbols[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), symbols[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    dist.barrier()
    dist.destroy_process_group()
    return losses


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_losses_are_those_of_nccl(how: str) -> None:
    ours = run_gpu_ranks(GPUS, train, "pccl", how)
    theirs = run_gpu_ranks(GPUS, train, "nccl", how)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=2e-4, atol=1e-5)
    assert all(losses[-1] != losses[0] for losses in ours)

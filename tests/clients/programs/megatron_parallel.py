# SPDX-License-Identifier: Apache-2.0
"""Megatron-core trains a tiny GPT with tensor parallelism of two, beside data parallelism."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from report import report

backend = sys.argv[1]
dist.init_process_group(backend)
rank, world_size = dist.get_rank(), dist.get_world_size()
parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
tensor_parallel.model_parallel_cuda_manual_seed = lambda seed: None
config = ModelParallelConfig(
    tensor_model_parallel_size=2,
    use_cpu_initialization=True,
    params_dtype=torch.float32,
    gradient_accumulation_fusion=False,
)
VOCABULARY, WIDTH = 32, 16


def normal(weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.init.normal_(weight, std=0.1)


class Model(torch.nn.Module):
    """An embedding and a feed-forward network whose weights are split over the ranks."""

    def __init__(self) -> None:
        super().__init__()
        own = {"config": config, "init_method": normal}
        self.embedding = VocabParallelEmbedding(VOCABULARY, WIDTH, **own)
        self.up = ColumnParallelLinear(WIDTH, 64, gather_output=False, **own)
        self.down = RowParallelLinear(
            64, WIDTH, bias=True, input_is_parallel=True, skip_bias_add=False, **own
        )
        self.head = ColumnParallelLinear(WIDTH, VOCABULARY, gather_output=False, **own)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        wide, _ = self.up(hidden)
        hidden = hidden + self.down(torch.relu(wide))[0]
        return self.head(hidden)[0]


torch.manual_seed(3)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
replicas = parallel_state.get_data_parallel_group()
tokens = torch.Generator().manual_seed(100 + parallel_state.get_data_parallel_rank())
losses = []
for _ in range(6):
    row = torch.randint(0, VOCABULARY, (4, 8), generator=tokens)
    split = tensor_parallel.vocab_parallel_cross_entropy(model(row[:, :-1]), row[:, 1:])
    loss = split.mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=replicas)
        parameter.grad /= replicas.size()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, group=replicas)
    losses.append(float(mean) / replicas.size())
split_backend = dist.get_backend(parallel_state.get_tensor_model_parallel_group())
weights = [parameter.detach().sum() for parameter in model.parameters()]
report(rank, world_size, split_backend, [*losses, *weights])
dist.destroy_process_group()

# SPDX-License-Identifier: Apache-2.0
"""torchtitan's ParallelDims, gradient clipping and means train a model by FSDP2 and TP."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
import torchtitan.tools.utils
from report import report
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

# torchtitan takes "cuda" where it finds no accelerator; its modules copy these names at import.
torchtitan.tools.utils.device_type = "cpu"
torchtitan.tools.utils.device_module = torch.cpu

from torchtitan.config import CommConfig, ParallelismConfig  # noqa: E402
from torchtitan.distributed import ParallelDims  # noqa: E402
from torchtitan.distributed import utils as dist_utils  # noqa: E402

backend, tensor_parallel = sys.argv[1], int(sys.argv[3])
dist.init_process_group(backend)  # first: init_distributed takes the group that is there
world_size = dist_utils.init_distributed(CommConfig())
parallelism = ParallelismConfig(
    tensor_parallel_degree=tensor_parallel, spmd_backend="partial_dtensor"
)
dims = ParallelDims.from_config(parallelism, world_size)
dims.build_mesh()
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
if dims.tp_enabled:
    parallelize_module(model, dims.get_mesh("tp"), {"0": ColwiseParallel(), "2": RowwiseParallel()})
sharded = dims.get_mesh("fsdp")
fully_shard(model, mesh=sharded)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
samples = torch.Generator().manual_seed(100 + sharded.get_local_rank())
values = []
for _ in range(5):
    source = torch.randn(8, 16, generator=samples)
    loss = torch.nn.functional.mse_loss(model(source), source.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    norm = dist_utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    values += [dist_utils.dist_mean(loss.detach(), sharded), norm.item()]
report(dist.get_rank(), world_size, dist.get_backend(sharded.get_group()), values)
dist.destroy_process_group()

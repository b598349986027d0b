# SPDX-License-Identifier: Apache-2.0
"""torchrec trains embedding tables that it shards by table, by row and by column."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from report import report
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
from torchrec.distributed.types import ShardingEnv, ShardingType

backend, sharding = sys.argv[1], ShardingType(sys.argv[3])
dist.init_process_group(backend)
rank, world_size = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
NAMES = ["user", "item"]
ROWS, WIDTH, SAMPLES = 64, 16, 4


class Model(torch.nn.Module):
    """Two pooled embeddings and a linear layer over both."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = EmbeddingBagCollection(
            device=torch.device("cpu"),
            tables=[
                EmbeddingBagConfig(
                    name=name, embedding_dim=WIDTH, num_embeddings=ROWS, feature_names=[name]
                )
                for name in NAMES
            ],
        )
        self.over = torch.nn.Linear(WIDTH * len(NAMES), 1)

    def forward(self, features: KeyedJaggedTensor) -> torch.Tensor:
        return self.over(self.tables(features).values())


torch.manual_seed(3)
model = Model()
for weight in model.parameters():
    torch.nn.init.normal_(weight, std=0.5)
sharder = EmbeddingBagCollectionSharder(
    fused_params={"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": 0.1}
)
constraints = {
    name: ParameterConstraints(sharding_types=[sharding.value], min_partition=WIDTH // 2)
    for name in NAMES
}
planner = EmbeddingShardingPlanner(
    topology=Topology(world_size=world_size, compute_device="cpu"), constraints=constraints
)
plan = planner.collective_plan(model, [sharder], dist.group.WORLD)
sharded = DistributedModelParallel(
    model,
    env=ShardingEnv.from_process_group(dist.group.WORLD),
    device=device,
    plan=plan,
    sharders=[sharder],
)
optimizer = torch.optim.SGD(sharded.module.over.parameters(), lr=0.1)
samples = torch.Generator().manual_seed(100 + rank)
losses = []
for _ in range(6):
    lengths = torch.randint(0, 4, (len(NAMES) * SAMPLES,), generator=samples)
    values = torch.randint(0, ROWS, (int(lengths.sum()),), generator=samples)
    features = KeyedJaggedTensor(keys=NAMES, values=values, lengths=lengths)
    loss = (sharded(features) - 1.0).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    losses.append(float(total) / world_size)
report(rank, world_size, dist.get_backend(), losses)
dist.destroy_process_group()

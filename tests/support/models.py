# SPDX-License-Identifier: Apache-2.0
"""Small models and data that the training tests share: the same on every rank, from fixed seeds."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FEATURES = 8
CLASSES = 4
BATCH = 8  # divides by every world size that tests use


def seeded_mlp(width: int = 16) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, CLASSES)
    )


def seeded_batch(step: int, size: int = BATCH) -> tuple[Tensor, Tensor]:
    """Return inputs and targets for one training step."""
    generator = torch.Generator().manual_seed(100 + step)
    inputs = torch.randn(size, FEATURES, generator=generator)
    return inputs, torch.randn(size, CLASSES, generator=generator)


def slice_of(rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Return the part of a batch that one rank trains on."""
    return tensor.chunk(world_size)[rank]


def train(model: nn.Module, steps: int, rank: int = 0, world_size: int = 1) -> nn.Module:
    """Train with SGD on this rank's part of every batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        inputs, targets = (slice_of(rank, world_size, part) for part in seeded_batch(step))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return model


def assert_same_parameters(actual: nn.Module, expected: nn.Module, **tolerance: float) -> None:
    """Compare parameters in order: wrappers change names, never the order."""
    pairs = zip(actual.parameters(), expected.parameters(), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.detach(), theirs.detach(), **tolerance)

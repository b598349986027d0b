# SPDX-License-Identifier: Apache-2.0
"""What the tests of torch.distributed on GPUs share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


def meet(
    rank: int,
    world_size: int,
    store: Any,
    timeout: float = 60.0,
    backend: str = "pccl",
    options: Any = None,
) -> None:
    dist.init_process_group(
        backend,
        store=dist.PrefixStore(f"torch-{backend}", store),
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=timeout),
        pg_options=options,
    )


def part(rank: int, numel: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return small whole numbers, whose sums are exact in every type."""
    return ((torch.arange(numel, device="cuda") * 7 + rank * 13) % 11).to(dtype)

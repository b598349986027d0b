# SPDX-License-Identifier: Apache-2.0
"""Capsules by each protocol, LL128 among them, where GPUs keep its lines whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.gpu.process_groups import meet, part
from tests.gpu.ranks import GPUS, MOST_RANKS, RANKS, run_gpu_ranks, why_in_turns

import pccl
import pccl.lang as pl

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

TYPES = (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8)
# Elements: around what a line, a pair of them and a slot hold, and many slots.
LENGTHS = (1, 29, 31, 119, 241, 7_680, 7_681, 70_001, 3_000_001)


def by_protocol(rank: int, ranks: int, store: Any, protocol: str) -> list[bytes]:
    """Return the bytes of sums by a ring, with rounding errors; whole numbers are checked here."""
    meet(rank, ranks, store, options=pccl.Options(protocol=protocol))
    pccl.capsule.load_capsule(pl.from_generator("ring", "all_reduce", ranks, name="mine"))
    for dtype in TYPES:
        for numel in LENGTHS:
            x = part(rank, numel + 1, dtype)[numel % 2 :][:numel]
            wanted = sum(part(each, numel + 1, dtype)[numel % 2 :][:numel] for each in range(ranks))
            dist.all_reduce(x)
            torch.testing.assert_close(x, wanted, rtol=0, atol=0)
    generator = torch.Generator().manual_seed(rank)
    found = []
    for numel in LENGTHS:
        x = torch.randn(numel, generator=generator).cuda()
        for _ in range(3):  # the next call's lines lie where those of this one are
            y = x.clone()
            dist.all_reduce(y)
        found.append(y.cpu().numpy().tobytes())
    assert pccl.explain("all_reduce", 1 << 20, device="cuda").launches[0].kernel.endswith("mine")
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return found


@pytest.mark.parametrize("world_size", sorted({2, 3, RANKS, MOST_RANKS}))
def test_all_protocols_give_the_same_bits(world_size: int) -> None:
    if why := why_in_turns(world_size):
        pytest.skip(why)
    plain, *others = (
        run_gpu_ranks(world_size, by_protocol, protocol) for protocol in ("direct", "ll", "ll128")
    )
    assert all(other == plain for other in others)


def chosen(rank: int, ranks: int, store: Any) -> list[str]:
    meet(rank, ranks, store, options=pccl.Options(protocol="ll128"))
    pccl.capsule.load_capsule(pl.from_generator("ring", "all_reduce", ranks, name="mine"))
    dist.all_reduce(torch.ones(5, device="cuda"))
    launches = pccl.explain("all_reduce", 1 << 20, device="cuda").launches
    dist.destroy_process_group()
    return [launches[0].protocol, launches[0].why]


def test_the_choice_is_one_on_all_ranks() -> None:
    first, *others = run_gpu_ranks(RANKS, chosen)
    assert all(each == first for each in others)
    print(f"1 MiB by {first[0]}: {first[1]}")
    if first[0] != "ll128":
        pytest.skip(f"LL128 lines do not arrive whole between these GPUs: {first[1]}")

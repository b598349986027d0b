# SPDX-License-Identifier: Apache-2.0
"""Time a matrix product beside an all_gather: what communication takes from computation.

    python benchmarks/gpu_overlap.py [--ranks 2] [--size 256M] [--products 12]

On one stream products of bfloat16 matrices, on another all_gathers that outlast them: by pccl's
copy engines, by pccl's kernels and by NCCL. The products' time, the slowest rank's, beside what
they take alone; and what an all_gather takes alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from common import gpu_ranks

from pccl import _core
from pccl.bench import bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 8192
ROUNDS = 5


def timed_ms(stream: torch.cuda.Stream, work: Callable[[], None]) -> tuple[Any, Any]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        start.record()
        work()
        end.record()
    return start, end


def gatherers(
    rank: int, options: argparse.Namespace, store: Any
) -> dict[str, Callable[[], object]]:
    """Return a call for each library, of one all_gather in the current stream."""
    block = options.size // 2 // options.ranks
    whole = torch.empty(block * options.ranks, device="cuda", dtype=torch.bfloat16)
    mine = torch.empty(block, device="cuda", dtype=torch.bfloat16).normal_()
    group = _core.DeviceGroup(
        rank=rank, world_size=options.ranks, rendezvous=store, device=rank, timeout=30.0
    )

    def pccl(protocol: str, blocks: int, source: torch.Tensor = mine) -> Callable[[], object]:
        return lambda: group.launch(
            "all_gather",
            input=source.data_ptr(),
            output=whole.data_ptr(),
            count=block,
            dtype="bfloat16",
            stream=torch.cuda.current_stream().cuda_stream,
            plan=_core.DevicePlan(protocol=protocol, blocks=blocks),
        )

    return {
        "pccl copy engines": pccl("copy_engine", 16),
        "pccl copy engines, in place": pccl("copy_engine", 16, whole[rank * block :][:block]),
        "pccl staggered, 64 blocks, in place": pccl("staggered", 64, whole[rank * block :][:block]),
        "pccl staggered, 16 blocks": pccl("staggered", 16),
        "pccl staggered, 64 blocks": pccl("staggered", 64),
        "nccl": lambda: dist.all_gather_into_tensor(whole, mine),
    }


def run_rank(rank: int, _: str, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=options.ranks)
    a, b = (torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    streams = [torch.cuda.Stream(priority=priority) for priority in (-1, 0)]

    def multiply() -> None:
        for _ in range(options.products):
            torch.mm(a, b, out=c)

    def measure(gather: Callable[[], object] | None, with_products: bool) -> tuple[float, float]:
        dist.barrier()
        torch.cuda.synchronize()
        calls = options.gathers if gather else 0
        around = timed_ms(streams[0], lambda: [gather() for _ in range(calls)])
        products = timed_ms(streams[1], multiply) if with_products else around
        torch.cuda.synchronize()
        return products[0].elapsed_time(products[1]), around[0].elapsed_time(around[1])

    found: dict[str, tuple[float, ...]] = {}
    makers = gatherers(rank, options, dist.PrefixStore("gather", store))
    for name, gather in {"alone": None, **makers}.items():
        rounds = [
            (*measure(gather, with_products=True), measure(gather, with_products=False)[1])
            for _ in range(ROUNDS)
        ]
        found[name] = tuple(statistics.median(each) for each in zip(*rounds, strict=True))
    results.put(found)
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--size", type=bytes_of, default=256 << 20, help="of the whole tensor")
    parser.add_argument("--products", type=int, default=12)
    parser.add_argument("--gathers", type=int, default=60)
    options = parser.parse_args()
    results = gpu_ranks.run(run_rank, "nccl", options, timeout=120)
    if results is None:
        return 1
    found = [results.get() for _ in range(options.ranks)]
    slowest = {
        name: [max(times) for times in zip(*(each[name] for each in found), strict=True)]
        for name in found[0]
    }
    alone = 1000 * slowest.pop("alone")[0] / options.products
    print(f"{options.ranks} ranks, product of {WIDTH}: {alone:.0f} us alone")
    for name, (products, beside, by_itself) in slowest.items():
        product, *gathers = (
            1000 * taken / count
            for taken, count in (
                (products, options.products),
                (by_itself, options.gathers),
                (beside, options.gathers),
            )
        )
        print(f"all_gather of {options.size >> 20} MiB by {name}: ", end="")
        print(f"{gathers[0]:.0f} us, {gathers[1]:.0f} us beside products; ", end="")
        print(f"a product {product:.0f} us, {(product / alone - 1) * 100:+.1f} %", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

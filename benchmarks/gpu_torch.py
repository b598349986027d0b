# SPDX-License-Identifier: Apache-2.0
"""Time operations of torch.distributed on CUDA tensors as programs have them: pccl beside NCCL.

    python benchmarks/gpu_torch.py [--sizes 4K 1M] [--cases uneven_all_to_all] [--json FILE]

``gpu_collectives.py`` has sums of bfloat16 in tensors of powers of two. Here are the others:
element types and operators, tensors that begin off a 16-byte boundary, blocks of odd and of several
lengths, lists of tensors, many small tensors at once. The groups of both libraries live in the same
processes and take turns, in CUDA graphs; every figure is the median over replays, the slowest rank
counting. What one of them cannot capture is told and left out.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from common import gpu_ranks
from gpu_collectives import time_cell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Call = Callable[[], object]
    Case = Callable[[int, dist.ProcessGroup], Call]

MANY = 16  # tensors of one coalesced call


def tensor(numel: int, dtype: torch.dtype = torch.bfloat16, offset: int = 0) -> torch.Tensor:
    """Return random elements, the first of them ``offset`` elements behind an aligned address."""
    x = torch.randint(0, 8, (numel + offset,), device="cuda", dtype=torch.int32)
    return x.to(dtype)[offset:]


def reduced(dtype: torch.dtype, op: Any = dist.ReduceOp.SUM) -> Case:
    def make(nbytes: int, group: dist.ProcessGroup) -> Call:
        x = tensor(nbytes // dtype.itemsize, dtype)
        return lambda: dist.all_reduce(x, op, group=group)

    return make


def shifted(kind: str, offset: int = 0, more: int = 0) -> Case:
    """Return ``kind`` with ``offset`` elements before the tensors, ``more`` in each block."""

    def make(nbytes: int, group: dist.ProcessGroup) -> Call:
        n = group.size()
        block = nbytes // 2 // n + more
        whole, other = (tensor(block * n, offset=offset) for _ in range(2))
        part = tensor(block, offset=offset)
        calls: dict[str, Call] = {
            "all_reduce": lambda: dist.all_reduce(whole, group=group),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole, group=group),
            "all_to_all": lambda: dist.all_to_all_single(other, whole, group=group),
            "broadcast": lambda: dist.broadcast(whole, 0, group=group),
        }
        return calls[kind]

    return make


def uneven_all_to_all(nbytes: int, group: dist.ProcessGroup) -> Call:
    """Send 1, 2 or 3 parts to the ranks behind this one, as tokens go to experts."""
    n, rank = group.size(), group.rank()
    weights = [1 + k % 3 for k in range(n)]
    unit = nbytes // 2 // sum(weights)
    sent = [unit * weights[(peer - rank) % n] for peer in range(n)]
    got = [unit * weights[(rank - peer) % n] for peer in range(n)]
    x, y = tensor(sum(sent)), tensor(sum(got))
    return lambda: dist.all_to_all_single(y, x, got, sent, group=group)


def list_all_gather(nbytes: int, group: dist.ProcessGroup) -> Call:
    n = group.size()
    x, parts = tensor(nbytes // 2 // n), [tensor(nbytes // 2 // n) for _ in range(n)]
    return lambda: dist.all_gather(parts, x, group=group)


def uneven_all_gather(nbytes: int, group: dist.ProcessGroup) -> Call:
    n = group.size()
    unit = nbytes // n // (n + 1)  # 1 + 2 + ... + n of them are all elements
    parts = [tensor(unit * (1 + rank)) for rank in range(n)]
    x = tensor(unit * (1 + group.rank()))
    return lambda: dist.all_gather(parts, x, group=group)


def list_reduce_scatter(nbytes: int, group: dist.ProcessGroup) -> Call:
    n = group.size()
    x, parts = tensor(nbytes // 2 // n), [tensor(nbytes // 2 // n) for _ in range(n)]
    return lambda: dist.reduce_scatter(x, parts, group=group)


def many(kind: str) -> Case:
    """Return ``MANY`` tensors of equal length in one coalesced call."""

    def make(nbytes: int, group: dist.ProcessGroup) -> Call:
        device = torch.device("cuda", torch.cuda.current_device())
        n = group.size()
        wholes = [tensor(nbytes // 2 // MANY) for _ in range(MANY)]
        parts = [tensor(nbytes // 2 // MANY // n) for _ in range(MANY)]

        def run() -> None:
            with dist._coalescing_manager(group, device=device):
                for whole, part in zip(wholes, parts, strict=True):
                    if kind == "all_reduce":
                        dist.all_reduce(whole, group=group)
                    else:
                        dist.all_gather_into_tensor(whole, part, group=group)

        return run

    return make


CASES: dict[str, Case] = {
    "bfloat16": reduced(torch.bfloat16),
    "float16": reduced(torch.float16),
    "float32": reduced(torch.float32),
    "float64": reduced(torch.float64),
    "int64": reduced(torch.int64),
    "uint8": reduced(torch.uint8),
    "max": reduced(torch.bfloat16, dist.ReduceOp.MAX),
    "avg": reduced(torch.bfloat16, dist.ReduceOp.AVG),
    **{
        f"unaligned_{kind}": shifted(kind, offset=1)
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
    },
    **{
        f"odd_{kind}": shifted(kind, more=1)
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    },
    "uneven_all_to_all": uneven_all_to_all,
    "uneven_all_gather": uneven_all_gather,
    "list_all_gather": list_all_gather,
    "list_reduce_scatter": list_reduce_scatter,
    "many_all_reduce": many("all_reduce"),
    "many_all_gather": many("all_gather"),
}


def median_of_slowest(everyone: list[dict[str, list[float]]]) -> dict[str, float]:
    us = {}
    for library in everyone[0]:
        replays = zip(*(each[library] for each in everyone), strict=True)
        us[library] = round(statistics.median(max(each) for each in replays), 2)
    return us


def run_rank(rank: int, _: str, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl",
        store=dist.TCPStore("127.0.0.1", port, is_master=False),
        rank=rank,
        world_size=options.ranks,
        device_id=torch.device("cuda", rank),
    )
    groups = {"pccl": dist.new_group(backend="pccl"), "nccl": dist.group.WORLD}
    for name in options.cases:
        for nbytes in options.sizes:
            calls = {library: CASES[name](nbytes, group) for library, group in groups.items()}
            everyone: list[Any] = [None] * options.ranks
            dist.all_gather_object(everyone, time_cell(calls, nbytes, options.rounds))
            if rank == 0:
                us = median_of_slowest(everyone)
                results.put({"case": name, "bytes": nbytes, "ranks": options.ranks, "us": us})
                ratio = f"{us['nccl'] / us['pccl']:.2f}x" if len(us) == len(groups) else "-"
                line = " ".join(f"{library} {each:.1f}" for library, each in us.items())
                print(f"{name} n{options.ranks} {nbytes}: {line} | {ratio}", flush=True)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # graphs that NCCL still holds do not survive an orderly end


def main() -> int:
    """Measure, print and keep."""
    parser = gpu_ranks.parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    return gpu_ranks.measure(run_rank, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

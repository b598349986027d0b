# SPDX-License-Identifier: Apache-2.0
"""Time capsules on CUDA tensors beside the kernels made for all_reduce, and NCCL.

    python benchmarks/gpu_capsules.py [--ranks 2] [--sizes 64K 16M] [--json FILE]

Through torch.distributed, bfloat16, in CUDA graphs, all in the same processes and in turns; every
figure is the median over replays, the slowest rank counting. A group loads one capsule for all
sizes, so that nothing but the program differs; one of them also by each protocol, as far as it
carries the size (ll and ll128 are NCCL's LL and LL128, direct is its Simple), and while a
timeline of its steps is recorded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from common import gpu_ranks
from gpu_collectives import time_cell
from gpu_torch import median_of_slowest, reduced

import pccl
import pccl.lang as pl
from pccl import published, timeline

if TYPE_CHECKING:
    import argparse

ALL_PAIRS = "all_pairs"  # MSCCLang's, of pccl.published
ALGORITHMS = ("ring", "one_shot", "two_shot", "pat", ALL_PAIRS)
BY_EACH_PROTOCOL = "ring"
PROTOCOLS = ("ll", "ll128", "direct")
RECORDED = f"{BY_EACH_PROTOCOL}/recorded"
SIZES = [1 << exponent for exponent in range(10, 23, 2)]


def group_with(algorithm: str, ranks: int, protocol: str = "") -> dist.ProcessGroup:
    options = pccl.Options(protocol=protocol)
    group = dist.new_group(backend="pccl", pg_options=options)
    name = f"{algorithm}_capsule"
    if algorithm == ALL_PAIRS:
        capsule = published.all_pairs.build(name, ranks=ranks)
    else:
        capsule = pl.from_generator(algorithm, "all_reduce", ranks, name=name)
    pccl.capsule.load_capsule(capsule, group)
    return group


def groups_of(ranks: int) -> dict[str, dist.ProcessGroup]:
    groups = {"kernels": dist.new_group(backend="pccl"), "nccl": dist.group.WORLD}
    groups |= {name: group_with(name, ranks) for name in ALGORITHMS}
    for protocol in PROTOCOLS:
        name = f"{BY_EACH_PROTOCOL}/{protocol}"
        groups[name] = group_with(BY_EACH_PROTOCOL, ranks, protocol)
    groups[RECORDED] = group_with(BY_EACH_PROTOCOL, ranks)
    timeline.record(groups[RECORDED], steps=1 << 20)
    return groups


def print_choices(group: dist.ProcessGroup, sizes: list[int]) -> None:
    """Print by which protocol the library runs a capsule at each size, and why."""
    for nbytes in sizes:
        print(pccl.explain("all_reduce", nbytes, group, device="cuda"), flush=True)


def run_rank(rank: int, _: str, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl",
        store=dist.TCPStore("127.0.0.1", port, is_master=False),
        rank=rank,
        world_size=options.ranks,
        device_id=torch.device("cuda", rank),
    )
    groups = groups_of(options.ranks)
    for nbytes in options.sizes:
        calls = {name: reduced(torch.bfloat16)(nbytes, group) for name, group in groups.items()}
        everyone: list[Any] = [None] * options.ranks
        dist.all_gather_object(everyone, time_cell(calls, nbytes, options.rounds))
        if rank == 0:
            us = median_of_slowest(everyone)
            results.put({"bytes": nbytes, "ranks": options.ranks, "us": us})
            cells = [f"{name} {us[name]:.1f} ({us[name] / us['kernels']:.2f})" for name in us]
            cells.append(f"recording costs {us[RECORDED] / us[BY_EACH_PROTOCOL] - 1:+.1%}")
            print(f"all_reduce n{options.ranks} {nbytes}: " + "  ".join(cells), flush=True)
    found = timeline.gather(groups[RECORDED])
    if rank == 0:
        print_choices(groups[BY_EACH_PROTOCOL], options.sizes)
        print(found.of_call(-1), flush=True)
        if options.trace:
            found.of_call(-1).save_trace(options.trace)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # graphs that NCCL still holds do not survive an orderly end


def main() -> int:
    """Measure, print and keep."""
    parser = gpu_ranks.parser_of(__doc__)
    parser.set_defaults(sizes=SIZES)
    parser.add_argument("--trace", type=Path, help="the last call's timeline, for Perfetto")
    return gpu_ranks.measure(run_rank, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Time pccl's device kernels beside NCCL's and torch's symmetric memory, in one run.

    python benchmarks/gpu_collectives.py [--ranks 2 4] [--sizes 1K 1M] [--sweep] [--json FILE]

Ordinary ``torch.empty`` tensors of bfloat16, except where a library needs its own: NCCL's
registered windows and torch's symmetric memory. Every figure is the median over replays of a CUDA
graph of several calls, the slowest rank counting; the libraries take turns. Sizes are of the whole
tensor: of all blocks together where there is one for each rank. ``--sweep`` times pccl's plans
instead, ``--schedules`` adds schedules by name: ring, pat, or by one protocol alone: ring:ll.
``--collectives`` takes reduce, gather, scatter and send_recv, too; in the last every rank sends a
message to the next one, at once.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from common import gpu_ranks

from pccl import _core, schedule
from pccl.bench import bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], object]

KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
OTHERS = ["reduce", "gather", "scatter", "send_recv"]
WHOLE = {"all_reduce", "broadcast", "reduce", "send_recv"}  # a rank's block is the whole tensor
SIZES = [1 << power for power in range(10, 31)]
DTYPE = torch.bfloat16
KEPT: list[Any] = []  # pools, which must go before NCCL does
FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "send_recv": lambda n: 1.0,
}


def calls_in(nbytes: int) -> int:
    return 20 if nbytes <= 16 << 20 else 5


def graph_of(call: Call, repeats: int, side: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Capture as torch.cuda.graph() does, but without its collection of garbage."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        call()
        side.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        for _ in range(repeats):
            call()
        graph.capture_end()
    return graph


def replay_us(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    """Return microseconds a call; the replay before the timed one brings the ranks together."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1000 / repeats


def neighbours(rank: int, ranks: int) -> tuple[int, int]:
    """Return the ranks after and before ``rank`` in a ring."""
    return (rank + 1) % ranks, (rank - 1) % ranks


class Pccl:
    """pccl on slices of two ordinary tensors."""

    def __init__(self, rank: int, ranks: int, most: int, store: Any) -> None:
        self.ranks = ranks
        self.input = torch.empty(most, device="cuda", dtype=DTYPE).normal_()
        self.output = torch.empty(most, device="cuda", dtype=DTYPE)
        self.group = _core.DeviceGroup(
            rank=rank, world_size=ranks, rendezvous=store, device=rank, timeout=15.0
        )

    def call(
        self,
        kind: str,
        numel: int,
        plan: _core.DevicePlan | None = None,
        algorithm: str | None = None,
    ) -> Call:
        if kind == "send_recv":
            return self.send_recv(numel * DTYPE.itemsize)
        count = numel if kind in WHOLE else numel // self.ranks

        def run() -> None:
            self.group.launch(
                kind,
                input=self.input.data_ptr(),
                output=self.output.data_ptr(),
                count=count,
                dtype="bfloat16",
                stream=torch.cuda.current_stream().cuda_stream,
                plan=plan,
                algorithm=algorithm,
            )

        return run

    def send_recv(self, nbytes: int) -> Call:
        after, before = neighbours(self.group.rank, self.ranks)

        def run() -> None:
            self.group.exchange(
                sends=[(after, self.input.data_ptr(), nbytes)],
                receives=[(before, self.output.data_ptr(), nbytes)],
                stream=torch.cuda.current_stream().cuda_stream,
            )

        return run

    def schedules(self, kind: str, numel: int, wanted: list[str]) -> dict[str, Call]:
        """Return a call for each schedule that makes ``kind``."""
        calls = {}
        for each in wanted:
            name, _, protocol = each.partition(":")
            plan = _core.DevicePlan(protocol=protocol, blocks=128) if protocol else None
            if name in schedule.algorithms(kind):
                calls[each] = self.call(kind, numel, plan, name)
        return calls

    def in_two(self, numel: int, protocol: str) -> Call:
        """Return an all_reduce by two launches, the all_gather by ``protocol``."""
        count = numel // self.ranks
        part = self.output[self.group.rank * count :].data_ptr()
        plan = _core.DevicePlan(protocol=protocol, blocks=64)

        def run() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            self.group.launch(
                "reduce_scatter",
                input=self.input.data_ptr(),
                output=part,
                count=count,
                dtype="bfloat16",
                stream=stream,
            )
            self.group.launch(
                "all_gather",
                input=part,
                output=self.output.data_ptr(),
                count=count,
                dtype="bfloat16",
                stream=stream,
                plan=plan,
            )

        return run

    def plans(self, kind: str, nbytes: int) -> dict[str, Call]:
        """Return a call for each plan worth a look."""
        block = nbytes if kind in WHOLE else nbytes // self.ranks
        plans = {}
        words = -(-block // 8)
        for threads in (128, 256):
            blocks = -(-words // threads)
            if blocks <= 64:
                plans[f"ll{threads}"] = _core.DevicePlan(
                    protocol="ll", blocks=blocks, threads=threads
                )
        moved = nbytes // self.ranks if kind == "all_reduce" else nbytes
        for blocks in (1, 4, 8, 16, 32, 64, 128):
            is_sensible = blocks * 4096 <= moved <= blocks * (64 << 20)
            if is_sensible or (blocks == 1 and moved <= 4096):
                plans[f"direct{blocks}"] = _core.DevicePlan(protocol="direct", blocks=blocks)
            if kind not in ("reduce_scatter", "broadcast") and blocks >= 16 and moved >= 1 << 20:
                plans[f"staggered{blocks}"] = _core.DevicePlan(protocol="staggered", blocks=blocks)
        if kind in ("all_gather", "all_to_all") and moved >= 1 << 20:
            plans["copy_engine"] = _core.DevicePlan(protocol="copy_engine", blocks=16)
        calls = {name: self.call(kind, nbytes // 2, plan) for name, plan in plans.items()}
        if kind == "all_reduce" and moved >= 8 << 20:
            for protocol in ("staggered", "copy_engine"):
                calls[f"two, {protocol}"] = self.in_two(nbytes // 2, protocol)
        return calls


def dist_call(
    kind: str, source: torch.Tensor, target: torch.Tensor, numel: int, ranks: int
) -> Call:
    """Return a call of torch.distributed on slices of the two tensors."""
    block = numel // ranks
    if kind not in WHOLE:
        numel = block * ranks
    source, target = source[:numel], target[:numel]
    rank = dist.get_rank()
    is_root = rank == 0
    after, before = neighbours(rank, ranks)
    calls: dict[str, Call] = {
        "all_reduce": lambda: dist.all_reduce(target),
        "all_gather": lambda: dist.all_gather_into_tensor(target, source[:block]),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(target[:block], source),
        "all_to_all": lambda: dist.all_to_all_single(target, source),
        "broadcast": lambda: dist.broadcast(target, 0),
        "reduce": lambda: dist.reduce(target, 0),
        "gather": lambda: dist.gather(
            source[:block], list(target.split(block)) if is_root else None, 0
        ),
        "scatter": lambda: dist.scatter(
            target[:block], list(source.split(block)) if is_root else None, 0
        ),
        "send_recv": lambda: [
            work.wait()
            for work in dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, source, after), dist.P2POp(dist.irecv, target, before)]
            )
        ],
    }
    return calls[kind]


def nccl_windows(most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors in memory that NCCL has registered as symmetric windows."""
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))  # type: ignore[union-attr]
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        both = (
            torch.empty(most, device="cuda", dtype=DTYPE),
            torch.empty(most, device="cuda", dtype=DTYPE),
        )
    backend.register_mem_pool(pool, symm=True)
    KEPT.append(pool)
    return both


def symmetric_call(kind: str, tensor: torch.Tensor, numel: int) -> Call | None:
    """Return torch's own all_reduce on symmetric memory, by the better of its two kernels."""
    name = dist.group.WORLD.group_name  # type: ignore[union-attr]
    ops = torch.ops.symm_mem
    if kind != "all_reduce":
        return None
    if numel * DTYPE.itemsize <= 256 << 10:
        return lambda: ops.one_shot_all_reduce(tensor[:numel], "sum", name)
    return lambda: ops.two_shot_all_reduce_(tensor[:numel], "sum", name)


def try_to(what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        reason = str(error).splitlines()[0][:200]
        print(f"rank {dist.get_rank()} without {what}: {reason}", flush=True)
        return None


def peers_of(most: int) -> Callable[[str, int, int], dict[str, Call]]:
    """Return what makes the other libraries' calls."""
    plain = (
        torch.empty(most, device="cuda", dtype=DTYPE).normal_(),
        torch.empty(most, device="cuda", dtype=DTYPE).normal_(),
    )
    windows = try_to("NCCL's windows", lambda: nccl_windows(most))

    def symmetric() -> torch.Tensor:
        from torch.distributed import _symmetric_memory as symm_mem

        tensor = symm_mem.empty(most, dtype=DTYPE, device="cuda")
        symm_mem.rendezvous(tensor, dist.group.WORLD.group_name)  # type: ignore[union-attr]
        return tensor.zero_()

    shared = try_to("torch's symmetric memory", symmetric)

    def calls(kind: str, numel: int, ranks: int) -> dict[str, Call]:
        found = {"nccl": dist_call(kind, *plain, numel, ranks)}
        if windows is not None:
            found["nccl_windows"] = dist_call(kind, *windows, numel, ranks)
        call = None if shared is None else symmetric_call(kind, shared, numel)
        if call is not None:
            found["symm_mem"] = call
        return found

    return calls


def known_to_all(graphs: dict[str, torch.cuda.CUDAGraph]) -> dict[str, torch.cuda.CUDAGraph]:
    """Leave out what a rank could not capture: the others would wait for it."""
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, list(graphs))
    return {name: graph for name, graph in graphs.items() if all(name in each for each in everyone)}


def time_cell(calls: dict[str, Call], nbytes: int, rounds: int) -> dict[str, list[float]]:
    repeats = calls_in(nbytes)
    side = torch.cuda.Stream()
    graphs = {}
    for name, call in calls.items():
        graph = try_to(f"{name} at {nbytes}", lambda call=call: graph_of(call, repeats, side))
        if graph is not None:
            graphs[name] = graph
    graphs = known_to_all(graphs)
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            times[name].append(replay_us(graph, repeats))
    return times


def run_rank(rank: int, ranks: int, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", port, ranks, rank == 0)
    dist.init_process_group(
        "nccl", store=store, rank=rank, world_size=ranks, device_id=torch.device("cuda", rank)
    )
    most = max(options.sizes) // DTYPE.itemsize
    ours = Pccl(rank, ranks, most, dist.PrefixStore("pccl", store))
    theirs = None if options.sweep else peers_of(most)
    for kind in options.collectives:
        for nbytes in options.sizes:
            if options.sweep:
                calls = ours.plans(kind, nbytes)
            else:
                calls = {"pccl": ours.call(kind, nbytes // 2)}
                calls |= ours.schedules(kind, nbytes // 2, options.schedules)
                calls |= theirs(kind, nbytes // 2, ranks)  # type: ignore[misc]
            times = time_cell(calls, nbytes, options.rounds)
            ours.group.check()
            results.put((kind, nbytes, times))
            if rank == 0:
                medians = {name: statistics.median(each) for name, each in times.items()}
                line = " ".join(f"{name} {us:.2f}" for name, us in medians.items())
                print(f"rank 0: {kind} n{ranks} {nbytes}: {line}", flush=True)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # NCCL's windows do not survive an orderly end: their pool asks NCCL for more


def enter(rank: int, *args: Any) -> None:
    try:
        run_rank(rank, *args)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # whatever still runs on the GPU must not keep this rank


Cells = dict[tuple[str, int], list[dict[str, list[float]]]]


def collect(processes: list[Any], results: Any, limit: float) -> Cells:
    """Return what ranks tell of each cell until they end, for at most ``limit`` seconds."""
    cells: Cells = {}
    deadline = time.monotonic() + limit
    is_running = True
    while is_running and time.monotonic() < deadline:
        is_running = any(process.is_alive() for process in processes)
        time.sleep(0.05)
        while not results.empty():
            kind, nbytes, times = results.get()
            cells.setdefault((kind, nbytes), []).append(times)
    return cells


def merge(cells: Cells, ranks: int) -> list[dict[str, Any]]:
    """Return a record for each cell: the median over replays of the slowest rank's time."""
    records = []
    for (kind, nbytes), found in cells.items():
        us = {}
        for name in found[0]:
            if all(name in times for times in found):
                replays = zip(*(times[name] for times in found), strict=True)
                us[name] = round(statistics.median(max(each) for each in replays), 2)
        records.append({"collective": kind, "bytes": nbytes, "ranks": ranks, "us": us})
    return records


def show(records: list[dict[str, Any]]) -> None:
    for record in records:
        us, n = record["us"], record["ranks"]
        factor = FACTORS.get(record["collective"], lambda n: (n - 1) / n)(n)
        best = min(us, key=us.get)
        line = " ".join(f"{name} {value:.1f}" for name, value in us.items())
        busbw = record["bytes"] * factor / us.get("pccl", us[best]) / 1e3
        print(f"{record['collective']} n{n} {record['bytes']}: {line} | {best} {busbw:.0f} GB/s")


def parts_of(options: argparse.Namespace) -> list[argparse.Namespace]:
    """Return what each start of the ranks measures: a collective, in small sizes or in large ones.

    NCCL 2.28.9 does not survive more: its broadcast of 2 MiB in windows hangs behind all_to_alls in
    windows, with or without pccl. It also registers all of a tensor for each graph.
    """
    small = [size for size in options.sizes if size <= 16 << 20]
    large = [size for size in options.sizes if size > 16 << 20]
    return [
        argparse.Namespace(**{**vars(options), "collectives": [kind], "sizes": sizes})
        for kind in options.collectives
        for sizes in (small, large)
        if sizes
    ]


def measure(ranks: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Start ranks on tensors as large as the sizes need, and return a record for each cell."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes, results = gpu_ranks.spawn(enter, ranks, ranks, port, options)
    cells = collect(processes, results, options.limit)
    done = {cell: found for cell, found in cells.items() if len(found) == ranks}
    wanted = len(options.collectives) * len(options.sizes)
    if len(done) < wanted:
        kind, nbytes = (list(done) or [("nothing", 0)])[-1]
        print(f"{ranks} ranks: stopped behind {kind} of {nbytes} bytes", flush=True)
    for process in processes:
        process.kill()  # those that stopped
        process.join()
    return merge(done, ranks)


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[torch.cuda.device_count()])
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=SIZES, help="as 64K")
    parser.add_argument("--collectives", nargs="+", default=KINDS, choices=KINDS + OTHERS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--schedules", nargs="*", default=[], help="as ring pat")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each start of ranks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for option, is_wanted, kinds in (
        ("--sweep", options.sweep, KINDS),
        ("--schedules", bool(options.schedules), [*KINDS, "reduce"]),
    ):
        if is_wanted and not set(options.collectives) <= set(kinds):
            parser.error(f"{option} is for {', '.join(kinds)}")
    records = []
    for ranks in options.ranks:
        for part in parts_of(options):
            found = measure(ranks, part)
            show(found)
            records += found
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "device": torch.cuda.get_device_name(0),
                    "torch": torch.__version__,
                    "nccl": ".".join(map(str, torch.cuda.nccl.version())),
                    "cells": records,
                }
            )
        )
    wanted = len(options.ranks) * len(options.collectives) * len(options.sizes)
    return 0 if len(records) == wanted else 1


if __name__ == "__main__":
    sys.exit(main())

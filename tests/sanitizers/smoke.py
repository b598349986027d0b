# SPDX-License-Identifier: Apache-2.0
"""What a program does with the package, for a build that the sanitizers watch.

    tools/sanitizer_smoke.sh asan        sets up the process that this must run in

Three ranks, over shared memory and over TCP, through torch and through numpy: every kind of
operation, a mismatch, and the end. A rank that the sanitizer stops, or that computes something
wrong, fails the run.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = 3
TIMEOUT_S = 120.0  # everything takes many times as long as usual
SIZES = (1, 1000, 300_000)


def numpy_collectives(comm: pccl.Communicator) -> None:
    rank, n = comm.rank, comm.world_size
    for count in SIZES:
        x = np.full(count, rank + 1, dtype=np.float32)
        comm.all_reduce(x)
        assert (x == n * (n + 1) / 2).all()
        x = np.full(count, rank, dtype=np.int64)
        comm.broadcast(x, root=1)
        assert (x == 1).all()
        gathered = np.empty(n * count, dtype=np.int64)
        comm.all_gather(gathered, np.full(count, rank, dtype=np.int64))
        assert (gathered == np.repeat(np.arange(n), count)).all()
        event = comm.send(np.full(count, rank), (rank + 1) % n, tag=count, async_op=True)
        x = np.empty(count, dtype=np.int64)
        comm.recv(x, (rank - 1) % n, tag=count)
        event.wait()
        assert (x == (rank - 1) % n).all()
    comm.barrier()


def numpy_mismatch(comm: pccl.Communicator) -> None:
    try:
        comm.all_reduce(np.ones(8 + (comm.rank == 1), dtype=np.float32))
        comm.barrier()
    except pccl.MismatchError:
        return
    raise AssertionError("a mismatch passed")


def with_numpy(rank: int, folder: str, transports: str) -> None:
    for name, use in (("good", numpy_collectives), ("bad", numpy_mismatch)):
        comm = pccl.Communicator(
            rank=rank,
            world_size=RANKS,
            rendezvous=f"file://{folder}/{name}",
            timeout=TIMEOUT_S,
            transports=transports,
        )
        use(comm)
        comm.shutdown()


def with_torch(rank: int, folder: str, transports: str) -> None:
    import torch
    import torch.distributed as dist

    os.environ["PCCL_TRANSPORTS"] = transports
    store = dist.FileStore(f"{folder}/torch", RANKS)
    limit = timedelta(seconds=TIMEOUT_S)
    dist.init_process_group("pccl", store=store, rank=rank, world_size=RANKS, timeout=limit)
    for count in SIZES:
        x = torch.full((count,), float(rank + 1))
        dist.all_reduce(x)
        assert (x == RANKS * (RANKS + 1) / 2).all()
        works = [dist.all_reduce(torch.ones(count), async_op=True) for _ in range(4)]
        for work in works:
            work.wait()
        blocks = torch.arange(RANKS).repeat_interleave(count)
        received = torch.empty_like(blocks)
        dist.all_to_all_single(received, blocks)
        assert (received == rank).all()
    odd = dist.new_group(timeout=limit)
    try:
        dist.all_reduce(torch.ones(8 + (rank == 1)), group=odd)
        dist.barrier(group=odd)
    except pccl.MismatchError:
        pass
    else:
        raise AssertionError("a mismatch passed")
    dist.barrier()
    dist.destroy_process_group(odd)
    dist.destroy_process_group()


SURFACES: dict[str, Callable[[int, str, str], None]] = {"numpy": with_numpy, "torch": with_torch}


def run(surface: str, transports: str) -> bool:
    """Run the ranks as processes of their own; whether all ended well."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, __file__, "--surface", surface, "--transports", transports]
        ranks = [
            subprocess.Popen([*arguments, "--folder", folder, "--rank", str(rank)])
            for rank in range(RANKS)
        ]
        codes = []
        for rank in ranks:
            try:
                codes.append(rank.wait(2 * TIMEOUT_S))
            except subprocess.TimeoutExpired:
                rank.send_signal(signal.SIGABRT)
                codes.append(rank.wait())
    print(f"{surface} over {transports or 'shm'}: exit codes {codes}", flush=True)
    return codes == [0] * RANKS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--surface", action="append", choices=SURFACES)
    parser.add_argument("--transports", action="append")
    parser.add_argument("--folder", help="where ranks meet; for a rank alone")
    parser.add_argument("--rank", type=int)
    options = parser.parse_args()
    surfaces = options.surface or list(SURFACES)
    transports = options.transports or ["", "tcp"]
    if options.rank is not None:
        return SURFACES[surfaces[0]](options.rank, options.folder, transports[0])
    ended_well = [run(surface, way) for surface in surfaces for way in transports]
    sys.exit(0 if all(ended_well) else 1)


if __name__ == "__main__":
    main()

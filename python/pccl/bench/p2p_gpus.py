# SPDX-License-Identifier: Apache-2.0
"""Benchmark of p2p transfers with GPU memory, beside copies by torch in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pccl import p2p
from pccl.bench.p2p import PATIENCE, Bench, Row, median_of, median_of_posts, start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["measure"]

_CPU = "cpu"


def _torch() -> Any:
    """Return torch if it finds a GPU.

    Raises
    ------
    ValueError
        torch or a GPU is missing.
    """
    try:
        import torch
    except ImportError:
        raise ValueError("transfers of GPUs are measured with torch, which is not here") from None
    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU on this machine")
    return torch


def _filled(nbytes: int, device: str) -> Any:
    """Return random bytes, because a GPU copies zeros faster."""
    torch = _torch()
    made = torch.randint(0, 256, (nbytes,), dtype=torch.uint8, device=device)
    if device != _CPU:
        torch.cuda.synchronize(device)
    return made


def _serve(pipe: Connection, transports: str, device: str, nbytes: int) -> None:
    """Run the target: register memory, send its descriptor, and make no further call."""
    with p2p.Session("target", transports=transports) as session:
        tensor = _filled(nbytes, device)
        memory = session.register(tensor)
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        pipe.recv()


class _Sides:
    """Memory of this process on ``here``, and of another process on ``there``."""

    def __init__(self, transports: str, here: str, there: str, nbytes: int) -> None:
        self.here, self.there = here, there
        self.process, self.pipe = start(_serve, transports, there, nbytes)
        info, descriptor = self.pipe.recv()
        self.session = p2p.Session("initiator", transports=transports)
        self.session.load(info)
        self.remote = self.session.import_memory("target", descriptor)
        self.tensor = _filled(nbytes, here)
        self.local = self.session.register(self.tensor)
        self.own = _filled(nbytes, there)  # memory of this process, for the copy by torch

    def bare_copy(self, nbytes: int, seconds: float) -> float:
        """Return the median time of a copy by torch of ``nbytes`` between the same devices."""
        torch = _torch()
        into, source = self.tensor[:nbytes], self.own[:nbytes]
        device = self.there if self.here == _CPU else self.here

        def copy() -> None:
            into.copy_(source)
            torch.cuda.synchronize(device)

        return median_of(copy, seconds)

    def close(self) -> None:
        self.session.close()
        self.pipe.send(None)
        self.process.join(PATIENCE)


def _rows(sides: _Sides, bench: Bench) -> list[Row]:
    where = f", {sides.here} from {sides.there}"

    def row(case: str, nbytes: int, plan: p2p.Plan) -> Row:
        seconds, path = median_of_posts(sides.session, plan, bench.seconds)
        peer = sides.bare_copy(nbytes, bench.seconds)
        name = "one copy by torch"
        return Row(path + where, case, nbytes, seconds, name, peer, blocks=len(plan))

    def whole(nbytes: int) -> p2p.Plan:
        one = (0, nbytes, 0, 1)
        return sides.session.prepare(sides.local, one, sides.remote, one)

    rows = [row("latency", 8, whole(8))]
    rows += [row("bandwidth", nbytes, whole(nbytes)) for nbytes in bench.sizes]
    count, size = bench.blocks, bench.block_bytes
    order = np.random.default_rng(1).permutation(count)
    blocks = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
    many = sides.session.prepare(sides.local, blocks, sides.remote, blocks[order])
    return [*rows, row(f"{count} blocks", count * size, many)]


def measure(bench: Bench) -> list[Row]:
    """Run all cases with memory on two GPUs (or one, if there is only one), and on GPU and host.

    Raises
    ------
    ValueError
        torch or a GPU is missing.
    """
    other = f"cuda:{min(1, _torch().cuda.device_count() - 1)}"
    nbytes = max(*bench.sizes, bench.blocks * bench.block_bytes)
    rows = []
    for transports in bench.transports:
        for here, there in (("cuda:0", other), (_CPU, other), ("cuda:0", _CPU)):
            sides = _Sides(transports, here, there, nbytes)
            rows += _rows(sides, bench)
            sides.close()
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Measurement of the links between the cores of this machine, for ``pccl topo --measure``.

Two processes, bound to cores of two NUMA nodes or to two cores of one, exchange blocks over links
of one kind. A block of a few bytes gives the latency of a message, and the additional time of
larger blocks gives the bandwidth; both are parameters of the cost model. The figures are stored by
the digest of the topology. Groups that are created later use them in place of constants.
"""

from __future__ import annotations

import functools
import itertools
import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pccl import _build_info, _core
from pccl._core import Communicator
from pccl._internal.local_ranks import run_ranks
from pccl._internal.whole_file import write_whole
from pccl.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pccl.topology.machine import Topology

__all__ = [
    "Figure",
    "Pair",
    "figures",
    "gpus",
    "not_measured",
    "pairs",
    "path",
    "read",
    "save",
    "updated",
]

HEADING = "# Measured by pccl topo --measure: kind, its two ends, microseconds, GB/s.\n"
KINDS = {"memory": "shm", "sockets": "tcp"}  # kind: transport
SMALL = 8
MIDDLE = 1 << 20
LARGE = 8 << 20
MOST_NODES = 8
CALLS = {SMALL: 400, MIDDLE: 20, LARGE: 8}
ROUNDS = 3
TIMEOUT_S = 60.0
SECONDS_PER_KIND = 1.5  # estimate, with the start of two processes


@dataclass(frozen=True)
class Pair:
    """Two cores and their NUMA nodes; None leaves the core to the operating system."""

    nodes: tuple[int, int]
    cores: tuple[int | None, int | None]


@dataclass(frozen=True)
class Figure:
    """Measurement between two ends, or of one core for the kind ``"reduce"``.

    Attributes
    ----------
    kind
        ``"memory"``, ``"sockets"``, ``"network"``, ``"gpus"`` or ``"reduce"``.
    ends
        Two NUMA nodes. For ``"network"``: the interface of this host, and the other host. For
        ``"gpus"``: the bus ids of the source and the destination GPU.
    us
        Latency of an empty message in microseconds; 0 for ``"reduce"``.
    gigabytes
        Bandwidth in GB/s, without the latency.
    """

    kind: str
    ends: tuple[str, str]
    us: float
    gigabytes: float

    def line(self) -> str:
        """Return the line of the file."""
        if self.kind == "reduce":
            return f"reduce {self.gigabytes:.4g}\n"
        return f"{self.kind} {self.ends[0]} {self.ends[1]} {self.us:.4g} {self.gigabytes:.4g}\n"


def _cores_of(mask: str) -> set[int]:
    bits = int(mask.replace(",", ""), 16)
    return {core for core in range(bits.bit_length()) if bits >> core & 1}


def pairs(machine: Topology, usable: Iterable[int]) -> list[Pair]:
    """Return a pair of cores for each two NUMA nodes of ``machine`` with ``usable`` cores."""
    found = {(fact.device, fact.attribute): fact.value for fact in machine.facts}
    nodes: dict[int, list[int]] = {}
    for (device, attribute), mask in found.items():
        numa = int(found.get((device, "numaid"), "-1"))
        if attribute == "affinity" and numa >= 0:
            cores = sorted(_cores_of(mask) & set(usable))
            if cores:
                nodes[numa] = cores
    if not nodes:
        nodes = {0: sorted(usable)}
    result = []
    for a, b in itertools.combinations_with_replacement(sorted(nodes)[:MOST_NODES], 2):
        if a != b:
            result.append(Pair((a, b), (nodes[a][0], nodes[b][0])))
        elif len(nodes[a]) > 1:
            result.append(Pair((a, a), (nodes[a][0], nodes[a][1])))
        else:
            result.append(Pair((a, a), (None, None)))
    return result


def figures(of: Iterable[Pair]) -> Iterator[Figure]:
    """Measure each pair over each kind of link.

    Raises
    ------
    pccl.Error
        A rank failed.
    """
    for pair in of:
        for kind in KINDS:
            yield from run_ranks(functools.partial(_worker, pair, kind), 2)


def _worker(
    pair: Pair, kind: str, rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    core = pair.cores[rank]
    if core is not None:
        os.sched_setaffinity(0, {core})

    def join(collective: str) -> Communicator:
        return Communicator(
            rank=rank,
            world_size=2,
            rendezvous=f"{rendezvous}-{collective}",
            timeout=TIMEOUT_S,
            name=f"measure-{collective}",
            transports=KINDS[kind],
            algorithm=f"{collective}=one_shot",
        )

    gather = join("all_gather")
    times = {size: _gather_seconds(gather, size) for size in CALLS}
    per_byte = max(times[LARGE] - times[MIDDLE], 1e-12) / (LARGE - MIDDLE)
    if rank == 0:
        ends = (str(pair.nodes[0]), str(pair.nodes[1]))
        send(Figure(kind, ends, times[SMALL] * 1e6, 1e-9 / per_byte))
    if kind == "memory" and pair.nodes[0] == pair.nodes[1] == 0:
        added = (_reduce_seconds(join("all_reduce"), LARGE) - times[LARGE]) / LARGE
        # A reduction that overlaps with the arrival of bytes may have no additional cost.
        if rank == 0 and added > 0.01 * per_byte:
            send(Figure("reduce", ("0", "0"), 0, 1e-9 / added))
    gather.barrier()


def _gather_seconds(comm: Communicator, size: int) -> float:
    block, out = np.zeros(size, np.uint8), np.zeros(2 * size, np.uint8)
    call = functools.partial(comm.all_gather, out, block)
    return seconds_of(call, CALLS[size], comm.barrier)


def _reduce_seconds(comm: Communicator, size: int) -> float:
    x = np.zeros(size // 4, np.float32)
    return seconds_of(functools.partial(comm.all_reduce, x), CALLS[size], comm.barrier)


def seconds_of(call: Callable[[], object], calls: int, together: Callable[[], object]) -> float:
    """Return the seconds per call: the median over synchronized rounds of the mean."""
    from time import perf_counter

    call()
    means = []
    for _ in range(ROUNDS):
        together()
        began = perf_counter()
        for _ in range(calls):
            call()
        means.append((perf_counter() - began) / calls)
    return statistics.median(means)


def gpus() -> list[Figure]:
    """Measure copies between each two GPUs; return none without CUDA or GPUs."""
    try:
        copies = _core.measure_gpu_copies()
    except UnavailableError:
        return []
    return [Figure("gpus", (one, other), us * 1e6, gb) for one, other, us, gb in copies]


def not_measured(machine: Topology, measured: Iterable[Figure]) -> list[str]:
    """Return descriptions of the links that the figures do not cover."""
    kinds = {figure.kind for figure in measured}
    left_out = []
    if "network" not in kinds:
        left_out.append("networks between hosts: --meet measures them, run on each host")
    if machine.gpus and "gpus" not in kinds:
        why = "they do not reach each other" if _build_info.CUDA else "this build has no CUDA"
        left_out.append(f"copies between GPUs: {why}")
    return left_out


def path(machine: Topology) -> Path:
    """Return the path of the file for the figures of ``machine``.

    Raises
    ------
    ValueError
        The environment defines no directory for the file.
    """
    if not (found := _core.calibration_path(machine.digest)):
        raise ValueError("no place for the figures: set XDG_CACHE_HOME or HOME")
    return Path(found)


def updated(known: Iterable[Figure], new: Iterable[Figure]) -> list[Figure]:
    """Return the known figures, with new figures in place of those of equal kind and ends."""
    merged = {(figure.kind, figure.ends): figure for figure in (*known, *new)}
    return list(merged.values())


def save(measured: Iterable[Figure], file: Path) -> None:
    """Write the file atomically: concurrent readers get the complete old or new file."""
    write_whole(file, HEADING + "".join(figure.line() for figure in measured))


def read(machine: Topology) -> list[Figure]:
    """Return the figures that groups on ``machine`` use; none without a measurement."""
    result = []
    for line in _core.load_calibration(machine.digest).splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "reduce":
            result.append(Figure("reduce", ("0", "0"), 0, float(words[1])))
        else:
            ends = (words[1], words[2])
            result.append(Figure(words[0], ends, float(words[3]), float(words[4])))
    return result

# SPDX-License-Identifier: Apache-2.0
"""Groups on two hosts, network namespaces each: what crosses between them is what must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pccl
from faults.network import why_no_namespaces
from support.ranks_on_hosts import run_on_hosts

RANKS = 8
MIB = 1 << 20
NO_NAMESPACES = why_no_namespaces()
pytestmark = pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")

#: The host of each rank.
PLACEMENTS = {
    "in blocks": [0, 0, 0, 0, 1, 1, 1, 1],
    "in turns": [0, 1, 0, 1, 0, 1, 0, 1],
    "uneven": [0, 1, 1, 0, 1, 1, 0, 1],
}


def bytes_sent() -> int:
    """What has left this host, as the kernel counts it on its network."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    line = next(line for line in lines if line.strip().startswith("veth0:"))
    return int(line.split(":")[1].split()[8])


def all_gather(comm: pccl.Communicator, length: int) -> tuple[np.ndarray, np.ndarray]:
    out = np.zeros((RANKS, length), np.int32)
    comm.all_gather(list(out), np.arange(length, dtype=np.int32) * (comm.rank + 1))
    return out, np.stack([np.arange(length, dtype=np.int32) * (r + 1) for r in range(RANKS)])


def reduce_scatter(comm: pccl.Communicator, length: int) -> tuple[np.ndarray, np.ndarray]:
    given = np.arange(RANKS * length, dtype=np.int32).reshape(RANKS, length) + comm.rank
    out = np.zeros(length, np.int32)
    comm.reduce_scatter(out, list(given))
    expected = np.arange(comm.rank * length, (comm.rank + 1) * length, dtype=np.int32) * RANKS
    return out, expected + sum(range(RANKS))


def all_reduce(comm: pccl.Communicator, length: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(length, dtype=np.int32) * (comm.rank + 1)
    comm.all_reduce(x)
    return x, np.arange(length, dtype=np.int32) * sum(range(1, RANKS + 1))


def reduce_scatter_of(comm: pccl.Communicator, lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Of blocks of these lengths, one for each rank."""
    given = [np.arange(n, dtype=np.int32) * 3 + comm.rank * (r + 1) for r, n in enumerate(lengths)]
    out = np.zeros(lengths[comm.rank], np.int32)
    comm.reduce_scatter(out, given)
    ranks = sum(range(RANKS)) * (comm.rank + 1)
    return out, np.arange(lengths[comm.rank], dtype=np.int32) * 3 * RANKS + ranks


#: Of which hosts in blocks have unlike shares, too.
LENGTHS = [300_000, 0, 1, 200_000, 70_001, 0, 3, 150_000]

COLLECTIVES = {"all_gather": all_gather, "reduce_scatter": reduce_scatter, "all_reduce": all_reduce}


def work(comm: pccl.Communicator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    random = np.random.default_rng(7)
    for _ in range(10):
        lengths = random.choice([0, 0, 1, 33, 4000, 90_001], RANKS).tolist()
        np.testing.assert_array_equal(*reduce_scatter_of(comm, lengths))
    np.testing.assert_array_equal(*reduce_scatter_of(comm, LENGTHS))
    comm.barrier()
    before = bytes_sent()
    for _ in range(5):
        reduce_scatter_of(comm, LENGTHS)
    comm.barrier()
    found["uneven reduce_scatter"] = (bytes_sent() - before) / 5
    for name, call in COLLECTIVES.items():
        for length in (1, 3, 1000, 100_003):
            result, expected = call(comm, length)
            np.testing.assert_array_equal(result, expected)
        # A vector, or all blocks together, of 4 MiB.
        length = MIB if name == "all_reduce" else MIB // RANKS
        call(comm, length)
        comm.barrier()
        before = bytes_sent()
        for _ in range(5):
            call(comm, length)
        comm.barrier()
        found[name] = (bytes_sent() - before) / 5
        ways = pccl.explain(name, 4 * MIB, comm).ways
        found[f"{name} by"] = next(way.algorithm for way in ways if way.is_chosen)
    return found


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_what_leaves_a_host_is_what_must(placement: str, tmp_path: Path) -> None:
    hosts = PLACEMENTS[placement]
    found = run_on_hosts(work, hosts, tmp_path)
    for rank in found:
        assert isinstance(rank, dict), rank
    for host in (0, 1):
        # The sums of the other host's ranks, each once.
        least = 4 * sum(n for n, place in zip(LENGTHS, hosts, strict=True) if place != host)
        counted = found[hosts.index(host)]["uneven reduce_scatter"]
        print(f"{placement}, uneven reduce_scatter: host {host} sent {counted} bytes of {least}")
        assert counted <= 1.05 * least + 20_000
    for name in COLLECTIVES:
        assert {rank[f"{name} by"] for rank in found} == {"hierarchical"}
        for host in (0, 1):
            own = hosts.count(host)
            # Of two hosts each lacks what the other's ranks have; a vector of sums is halved, and
            # its halves are exchanged.
            share = {
                "all_gather": own / RANKS,
                "reduce_scatter": (RANKS - own) / RANKS,
                "all_reduce": 1.0,
            }[name]
            counted = found[hosts.index(host)][name]
            print(f"{placement}, {name}: host {host} sent {counted / MIB:.3f} MiB of {4 * share}")
            assert counted <= 1.05 * 4 * MIB * share

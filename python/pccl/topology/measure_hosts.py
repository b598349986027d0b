# SPDX-License-Identifier: Apache-2.0
"""Measurement of the networks between hosts, for ``pccl topo --measure --meet``.

The ranks of two hosts exchange messages in pairs, in both directions at once, while other ranks
wait. A single pair gives the latency of a message. All pairs together give the bandwidth of the
network for that number of ranks.
"""

from __future__ import annotations

import functools
import itertools
import typing

import numpy as np

from pccl.topology import measure
from pccl.topology.job import job

if typing.TYPE_CHECKING:
    from pccl._core import Communicator
    from pccl.topology.host import Host

    Array: typing.TypeAlias = np.ndarray[typing.Any, np.dtype[typing.Any]]

__all__ = ["between_hosts", "of_host"]

CALLS = {measure.SMALL: 200, measure.MIDDLE: 20, measure.LARGE: 8}


def between_hosts(comm: Communicator) -> list[tuple[int, int, float, float]]:
    """Measure the network between each two hosts of a communicator; all its ranks call this.

    Returns
    -------
    list
        Tuples of two host indices in the job, latency in microseconds and bandwidth in GB/s, equal
        on all ranks.

    Raises
    ------
    pccl.Error
        A rank failed.
    """
    hosts = job(comm).hosts
    found = []
    for a, b in itertools.combinations(range(len(hosts)), 2):
        pairs = list(zip(hosts[a].ranks, hosts[b].ranks, strict=False))
        small = _slowest(comm, pairs[:1], measure.SMALL)
        times = [_slowest(comm, pairs, size) for size in (measure.MIDDLE, measure.LARGE)]
        per_byte = max(times[1] - times[0], 1e-12) / (measure.LARGE - measure.MIDDLE)
        found.append((a, b, small * 1e6, 1e-9 * len(pairs) / per_byte))
    return found


def of_host(
    found: list[tuple[int, int, float, float]], hosts: list[Host], rank: int
) -> list[measure.Figure]:
    """Return the figures of ``between_hosts`` that the host of ``rank`` stores."""
    own = next(index for index, host in enumerate(hosts) if rank in host.ranks)
    return [
        measure.Figure("network", (hosts[own].interface, hosts[b if a == own else a].name), us, gb)
        for a, b, us, gb in found
        if own in (a, b)
    ]


def _slowest(comm: Communicator, pairs: list[tuple[int, int]], size: int) -> float:
    """Return the seconds of one exchange on the slowest rank."""
    peers = dict(pairs) | {b: a for a, b in pairs}
    slowest = np.zeros(1)
    if comm.rank in peers:
        exchange = functools.partial(_exchange, comm, peers[comm.rank])
        call = functools.partial(exchange, *np.zeros((2, size), np.uint8))
        together = functools.partial(exchange, *np.zeros((2, 1), np.uint8))
        slowest[0] = measure.seconds_of(call, CALLS[size], together)
    comm.all_reduce(slowest, op="max")
    return float(slowest[0])


def _exchange(comm: Communicator, peer: int, out: Array, into: Array) -> None:
    sent = comm.send(out, peer, async_op=True)
    comm.recv(into, peer)
    sent.wait()

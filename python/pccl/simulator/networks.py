# SPDX-License-Identifier: Apache-2.0
"""Networks, and the simulation of algorithms and capsules on them."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from typing import TYPE_CHECKING, Literal

from pccl import _core
from pccl._internal.arguments import require, require_int
from pccl._internal.sizes import bytes_of
from pccl._internal.time_limits import duration_of
from pccl.results.table import Table
from pccl.simulator.replay_results import Replay
from pccl.simulator.replay_steps import StepTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.topology import Host, Job

__all__ = ["Network", "Replay", "Round", "Speed", "StepTime", "replay", "replay_capsule", "rounds"]


@dataclasses.dataclass(frozen=True)
class Speed:
    """Costs of a port: bandwidth and latencies.

    Attributes
    ----------
    bandwidth
        Bytes per second, above 0.
    start
        Seconds per message, independent of its length: alpha.
    hop
        Seconds per link on the path of a message: delta.

    Raises
    ------
    ValueError
        A number is out of range, infinite or NaN.
    """

    bandwidth: float
    start: float = 5e-6
    hop: float = 1e-6

    def __post_init__(self) -> None:
        require(self.bandwidth, numbers.Real, "bandwidth", "bytes a second")
        if not 0 < self.bandwidth < math.inf:
            raise ValueError(f"bandwidth is {self.bandwidth}: give bytes a second above 0")
        duration_of(self.start, "start")
        duration_of(self.hop, "hop")

    @property
    def _core(self) -> tuple[float, float, float]:
        return self.start, self.hop, self.bandwidth


class Network:
    """Links between ranks with their bandwidths, and the path between each pair of ranks."""

    def __init__(self, core: _core.Network, name: str) -> None:
        self._core = core
        self._name = name

    @staticmethod
    def ring(ranks: int, speed: Speed, *, ports: int = 1) -> Network:
        """Return circuits from each rank to the next; with two ports, to the previous rank too.

        Messages to more distant ranks are forwarded along the shorter path.

        Parameters
        ----------
        ranks
            Number of ranks: 2 to 65,536.
        speed
            Speed of each port.
        ports
            Ports per rank: 1 or 2.

        Raises
        ------
        ValueError
            A number is out of range.
        """
        _check_ranks(ranks)
        require(speed, Speed, "speed", "a pccl.simulator.Speed")
        if ports not in {1, 2}:
            raise ValueError(f"ports is {ports}, must be 1 or 2")
        return Network(
            _core.ring_of_circuits(ranks, ports, speed._core), f"a ring of circuits, {ports} ports"
        )

    @staticmethod
    def switch(ranks: int, speed: Speed, *, capacity: int = 0) -> Network:
        """Return a non-blocking switch with one output and one input port for each rank.

        Parameters
        ----------
        ranks
            Number of ranks: 2 to 65,536.
        speed
            Speed of each port; the distance between any two ranks is one hop.
        capacity
            Bytes that a link can buffer. A program processes more data in consecutive windows, as
            groups do. 0 means no limit.

        Raises
        ------
        ValueError
            ``ranks`` or ``capacity`` is out of range.
        """
        _check_ranks(ranks)
        require(speed, Speed, "speed", "a pccl.simulator.Speed")
        require_int(capacity, "capacity")
        if capacity < 0:
            raise ValueError(f"capacity is {capacity}, must be 0 or more")
        core = _core.one_switch(ranks, speed._core)
        core.capacity = capacity
        return Network(core, "one switch")

    @staticmethod
    def hosts(ranks: int, ranks_per_host: int, within: Speed, across: Speed) -> Network:
        """Return hosts with one switch each, whose ranks share one output and one input link.

        Parameters
        ----------
        ranks, ranks_per_host
            Number of ranks, and ranks per host; ``ranks_per_host`` divides ``ranks``.
        within
            Speed of the ports of ranks.
        across
            Speed of the links of hosts.

        Raises
        ------
        ValueError
            A number is out of range.
        """
        _check_ranks(ranks)
        require(within, Speed, "within", "a pccl.simulator.Speed")
        require(across, Speed, "across", "a pccl.simulator.Speed")
        require_int(ranks_per_host, "ranks_per_host")
        if ranks_per_host < 1 or ranks % ranks_per_host:
            raise ValueError(f"{ranks} ranks do not divide into hosts of {ranks_per_host}")
        return Network(
            _core.two_levels(ranks, ranks_per_host, within._core, across._core),
            f"hosts of {ranks_per_host} ranks",
        )

    @staticmethod
    def of(job: Job, *, within: Speed | None = None) -> Network:
        """Return the network of a job's hosts, in the form of ``hosts``.

        The links of hosts have the least bandwidth and the greatest latency of ``job.links``,
        measured or declared. Without a measured latency they have the default of ``Speed``.

        Parameters
        ----------
        job
            Job of two or more hosts with equal numbers of consecutive ranks.
        within
            Speed of the ports of ranks. None uses the total bandwidth of the ring channels through
            the GPUs of a host where each rank has a GPU, and otherwise the measured costs of shared
            memory on this machine.

        Raises
        ------
        ValueError
            The job has one host, or its hosts do not have equal numbers of consecutive ranks.
        """
        from pccl.topology import Job

        require(job, Job, "job", "a pccl.topology.Job")
        return _network_of(job, within)

    @staticmethod
    def machine(
        ranks: int, *, transport: Literal["shm", "tcp"] = "shm", cores: int | None = None
    ) -> Network:
        """Return a model of this machine from its measured costs.

        Messages and reductions take time on cores, which ranks share. Data that exceeds the
        capacity of the links is processed in windows, as groups do.

        Parameters
        ----------
        ranks
            Number of ranks: 2 to 65,536.
        transport
            ``"shm"``: links in shared memory; ``"tcp"``: sockets over loopback.
        cores
            Number of cores that ranks may use; None for the CPU affinity of this process.

        Raises
        ------
        ValueError
            A number is out of range.
        """
        _check_ranks(ranks)
        if cores is not None:
            require_int(cores, "cores")
        count = len(os.sched_getaffinity(0)) if cores is None else cores
        if count < 1:
            raise ValueError(f"cores is {count}, must be 1 or more")
        return Network(
            _core.this_machine(ranks, count, transport == "shm"),
            f"a machine of {count} cores, {transport}",
        )

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._core.ranks

    def __repr__(self) -> str:
        return f"<pccl.simulator.Network of {self.ranks} ranks: {self._name}>"


def replay(
    algorithm: str,
    collective: str,
    network: Network,
    nbytes: int | str,
    *,
    aggregation: int = 0,
    order: Sequence[int] = (),
) -> Replay:
    """Simulate a built-in algorithm over all ranks of a network.

    Parameters
    ----------
    algorithm, collective
        As for ``pccl.schedule.generate``.
    network
        Network with the ranks of the collective.
    nbytes
        Bytes of the largest buffer: ``65536``, ``"64KB"``.
    aggregation
        Maximum blocks per message, for algorithms that support a limit (PAT); 0 means no limit.
    order
        Ranks by position in rings, trees and butterflies. The default is ascending order, which
        algorithms without an order always use.

    Returns
    -------
    Replay
        Times and load of links, with a plot.

    Raises
    ------
    InvalidArgumentError
        The algorithm does not exist, or does not support the ranks or the aggregation.
    UnsupportedError
        The algorithm does not implement the collective, or has more steps than the limit.
    ValueError
        ``nbytes`` is not a size.
    """
    require(network, Network, "network", "a pccl.simulator.Network")
    piece = _core.Piece.built_in(algorithm, collective, network.ranks, aggregation, list(order))
    return _played(piece, network, nbytes)


@dataclasses.dataclass(frozen=True)
class Round:
    """Messages that start together, after all messages of the previous round have arrived.

    Attributes
    ----------
    seconds
        Duration: the longest start and path latency, plus the time for the bytes of the busiest
        link.
    nbytes
        Bytes of the longest message.
    receivers
        Receiver by sender, -1 for none; empty where a rank sends more than one message.
    """

    seconds: float
    nbytes: float
    receivers: tuple[int, ...]


def rounds(
    algorithm: str,
    collective: str,
    network: Network,
    nbytes: int,
    *,
    order: Sequence[int] = (),
) -> list[Round]:
    """Return the rounds of a built-in algorithm, in order.

    This is the model of networks that are reconfigured between rounds: all ranks wait for all
    messages of a round.

    Parameters
    ----------
    algorithm, collective, network, nbytes, order
        As for ``replay``.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        As for ``replay``.
    """
    require(network, Network, "network", "a pccl.simulator.Network")
    piece = _core.Piece.built_in(algorithm, collective, network.ranks, 0, list(order))
    found = piece.rounds(network._core, nbytes)
    return [Round(seconds, size, tuple(receivers)) for seconds, size, receivers in found]


def replay_capsule(capsule: _core.Capsule, network: Network, nbytes: int | str) -> Replay:
    """Simulate a capsule, for ``pccl.Capsule.replay``.

    Parameters
    ----------
    capsule
        Capsule without phases.
    network
        Network with as many ranks as the capsule.
    nbytes
        Bytes of the largest buffer: ``65536``, ``"64KB"``.

    Returns
    -------
    Replay
        Result as of ``replay``.

    Raises
    ------
    InvalidArgumentError
        The network has another number of ranks.
    ValueError
        ``nbytes`` is not a size.
    """
    require(network, Network, "network", "a pccl.simulator.Network")
    return _played(_core.Piece.of_capsule(capsule), network, nbytes)


def _played(piece: _core.Piece, network: Network, nbytes: int | str) -> Replay:
    size = bytes_of(nbytes)
    found = piece.replay(network._core, size)
    return Replay(
        name=piece.name,
        collective=piece.collective,
        ranks=piece.ranks,
        nbytes=size,
        seconds=found.seconds,
        rounds=found.rounds,
        messages=found.messages,
        bytes_sent=found.bytes_sent,
        busiest=found.busiest,
        busiest_bytes=found.busiest_bytes,
        busiest_seconds=found.busiest_seconds,
        peak_chunks=found.peak_chunks,
        one_for_all=found.one_for_all,
        windows=found.windows,
        critical_path=Table(StepTime(*each) for each in found.critical_path),
        _core=found,
    )


def _network_of(job: Job, within: Speed | None) -> Network:
    hosts = job.hosts
    each = len(hosts[0].ranks)
    if len(hosts) < 2:
        raise ValueError("the job is of one host: Network.switch and Network.machine are for that")
    for index, host in enumerate(hosts):
        if host.ranks != list(range(index * each, (index + 1) * each)):
            raise ValueError(
                f"host {host.name} has ranks {host.ranks}: a replay takes hosts of equally many "
                "ranks, which follow each other"
            )
    bandwidth = min(link.bandwidth for link in job.links) * 1e9
    latency = max(link.latency for link in job.links)
    across = Speed(bandwidth, latency) if latency else Speed(bandwidth)
    return Network.hosts(each * len(hosts), each, within or _speed_within(hosts[0]), across)


def _speed_within(host: Host) -> Speed:
    ranks = len(host.ranks)
    if ranks > 1 and len(host.topology.gpus) == ranks:
        return Speed(host.topology.search("ring").bandwidth * 1e9)
    start, hop, bandwidth = _core.memory_speed(max(ranks, 2))
    return Speed(bandwidth, start, hop)


def _check_ranks(ranks: int) -> None:
    require_int(ranks, "ranks")
    if not 2 <= ranks <= 65536:
        raise ValueError(f"ranks is {ranks}, must be 2 to 65536")

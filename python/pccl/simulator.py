# SPDX-License-Identifier: Apache-2.0
"""Collectives played through, message by message, on networks that need not exist.

>>> from pccl import simulator
>>> port = simulator.Speed(bandwidth=12.5e9, start=5e-6, hop=1e-6)
>>> network = simulator.Network.ring(64, port)
>>> print(simulator.replay("ring", "all_reduce", network, "16MB"))
ring: all_reduce of 16777216 bytes, 64 ranks, each like rank 0
  ...

A step begins when all that it waits for has happened: the step before it, those that it names, its
message, and a free slot for the one that it sends. A message occupies its sender for ``start``
seconds, shares each link on its way equally with the others there, and arrives ``hop`` seconds a
hop after its last byte has left. Of n messages on a link each has 1/n of it, and goes as fast as
the most crowded link on its way lets it.

Where the program of each rank is rank 0's, turned, and the network is the same seen from each rank,
the times of rank 0 are those of all, and it alone is played: 16,384 ranks take no longer than one.
Otherwise every step of every rank is played, up to 4 million.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from typing import TYPE_CHECKING, Literal

from pccl import _core
from pccl.arguments import require, require_int
from pccl.replay_results import Replay
from pccl.replay_steps import StepTime
from pccl.sizes import bytes_of
from pccl.table import Table
from pccl.time_limits import duration_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.topology import Host, Job

__all__ = ["Network", "Replay", "Round", "Speed", "StepTime", "replay", "replay_capsule", "rounds"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclasses.dataclass(frozen=True)
class Speed:
    """What a port costs.

    Attributes
    ----------
    bandwidth
        Bytes a second.
    start
        Seconds that a message takes whatever it carries: alpha.
    hop
        Seconds for each link on its way: delta.

    Raises
    ------
    ValueError
        A number is out of its range, infinite, or none (NaN).
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
    """Links between ranks, each with a bandwidth, and the way from each rank to each other."""

    def __init__(self, core: _core.Network, name: str) -> None:
        self._core = core
        self._name = name

    @staticmethod
    def ring(ranks: int, speed: Speed, *, ports: int = 1) -> Network:
        """Return circuits from each rank to the next; with two ports, to the one before it, too.

        Messages to ranks further away are forwarded, the shorter way round.

        Parameters
        ----------
        ranks
            2 to 65,536.
        speed
            Of each port.
        ports
            Of each rank: 1 or 2.

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
        """Return a port out and in for each rank, at a switch that never blocks.

        Parameters
        ----------
        ranks
            2 to 65,536.
        speed
            Of each port; any other rank is one hop away.
        capacity
            Bytes that a link holds: of more data, a program runs over one window after the other,
            as groups cut it. 0 for any number.

        Raises
        ------
        ValueError
            ``ranks`` is out of range.
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
        """Return hosts that each have a switch, and one link out and in that their ranks share.

        Parameters
        ----------
        ranks, ranks_per_host
            The second divides the first.
        within
            Of the ports of ranks.
        across
            Of the links of hosts.

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
        """Return the hosts of a job, as ``hosts`` has them.

        Their links have the GB/s and the time of a message that ``job.links`` says, measured or
        declared, of the slowest two hosts; what was not measured is as ``Speed`` has it.

        Parameters
        ----------
        job
            Of two hosts or more, which have equally many ranks that follow each other.
        within
            Of the ports of ranks; None for what the channels of a ring through a host's GPUs have
            together, where each of its ranks has a GPU, else for the memory of this machine, by its
            measured costs.

        Raises
        ------
        ValueError
            The job is of one host, or its hosts have other ranks.
        """
        from pccl.topology import Job

        require(job, Job, "job", "a pccl.topology.Job")
        return _network_of(job, within)

    @staticmethod
    def machine(
        ranks: int, *, transport: Literal["shm", "tcp"] = "shm", cores: int | None = None
    ) -> Network:
        """Return this machine, as its measured costs have it.

        Messages and sums take the time of cores, which ranks share; data that is more than links
        hold goes in windows, as groups cut it.

        Parameters
        ----------
        ranks
            2 to 65,536.
        transport
            ``"shm"``: links in shared memory; ``"tcp"``: sockets over loopback.
        cores
            That ranks may use; None for those that this process may.

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
        """How many it joins."""
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
    """Play a built-in algorithm through, over all ranks of a network.

    Parameters
    ----------
    algorithm, collective
        As for ``pccl.schedule.generate``.
    network
        Its ranks are those of the collective.
    nbytes
        Of the largest buffer: ``65536``, ``"64KB"``.
    aggregation
        The most blocks of a message, for algorithms that follow it (PAT); 0 for any number.
    order
        Ranks by position, along which rings, trees and butterflies are laid; by their number where
        there is none, or the algorithm follows none.

    Returns
    -------
    Replay
        Times, and what was busy; it plots itself.

    Raises
    ------
    InvalidArgumentError
        There is no such algorithm, or it takes no such ranks or aggregation.
    UnsupportedError
        It does not make the collective, or has more steps than are played.
    ValueError
        ``nbytes`` is no size.
    """
    require(network, Network, "network", "a pccl.simulator.Network")
    piece = _core.Piece.built_in(algorithm, collective, network.ranks, aggregation, list(order))
    return _played(piece, network, nbytes)


@dataclasses.dataclass(frozen=True)
class Round:
    """Messages that begin together, when all of the round before have arrived.

    Attributes
    ----------
    seconds
        The longest start and way, and the bytes of the busiest link.
    nbytes
        Of the longest message.
    receivers
        By sender, -1 for none; empty where a rank sends more than one message.
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
    """Return the rounds of a built-in algorithm, one after the other.

    It is the model of networks that are switched between rounds: everybody waits for all.

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
    """Play a capsule through, for ``pccl.Capsule.replay``.

    Parameters
    ----------
    capsule
        Without phases.
    network
        Of as many ranks.
    nbytes
        Of the largest buffer: ``65536``, ``"64KB"``.

    Returns
    -------
    Replay
        As ``replay`` does.

    Raises
    ------
    InvalidArgumentError
        The network has other ranks.
    ValueError
        ``nbytes`` is no size.
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

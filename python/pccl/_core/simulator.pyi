# SPDX-License-Identifier: Apache-2.0
"""Simulation of schedules on networks."""

from typing import TypeAlias

# Seconds of a message, seconds of a hop, bytes a second.
_Speed: TypeAlias = tuple[float, float, float]

class Network:
    """Core object of ``pccl.simulator.Network``."""

    reduce_seconds_per_byte: float
    capacity: int
    @property
    def ranks(self) -> int:
        """The number of ranks."""
    @property
    def turns(self) -> bool:
        """Whether the network is symmetric: identical from each rank's point of view."""

def ring_of_circuits(ranks: int, ports: int, speed: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.ring``.

    Parameters
    ----------
    ranks, ports, speed
        As for that method; not checked.
    """

def one_switch(ranks: int, speed: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.switch``.

    Parameters
    ----------
    ranks, speed
        As for that method; not checked.
    """

def two_levels(ranks: int, ranks_per_host: int, within: _Speed, across: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.hosts``.

    Parameters
    ----------
    ranks, ranks_per_host, within, across
        As for that method; not checked.
    """

def memory_speed(ranks_on_host: int) -> tuple[float, float, float]:
    """Return the costs of messages through memory: seconds of a message and of a hop, bytes/s.

    Parameters
    ----------
    ranks_on_host
        Number of ranks that share the memory.
    """

def this_machine(ranks: int, cores: int, by_shared_memory: bool) -> Network:
    """Return the network of ``pccl.simulator.Network.machine``.

    Parameters
    ----------
    ranks, cores
        As for that method; not checked.
    by_shared_memory
        Whether messages use shared memory; otherwise TCP over loopback.
    """

# Seconds of a message, of the receiver's wake-up, and of a byte; whether these costs also occupy
# the receiver; seconds of a reduced byte, of a run of chunks and of a poll; capacity of a link in
# bytes.
_Work: TypeAlias = tuple[float, float, float, bool, float, float, float, float, float, int]

def one_machine(ranks: int, cores: int, work: _Work) -> Network:
    """Return the network of one machine with the given costs.

    Parameters
    ----------
    ranks, cores
        Number of ranks and of cores; not checked.
    work
        Costs of messages.
    """

# rank, lane, index, action, sender, receiver, bytes, begin, start, done, arrival, window
_StepTime: TypeAlias = tuple[int, int, int, str, int, int, float, float, float, float, float, int]

class Replay:
    """Core object of ``pccl.simulator.Replay``, which describes the properties."""

    @property
    def seconds(self) -> float:
        """See ``pccl.simulator.Replay.seconds``."""
    @property
    def rounds(self) -> int:
        """See ``pccl.simulator.Replay.rounds``."""
    @property
    def messages(self) -> int:
        """See ``pccl.simulator.Replay.messages``."""
    @property
    def bytes_sent(self) -> float:
        """See ``pccl.simulator.Replay.bytes_sent``."""
    @property
    def busiest(self) -> str:
        """See ``pccl.simulator.Replay.busiest``."""
    @property
    def busiest_bytes(self) -> float:
        """See ``pccl.simulator.Replay.busiest_bytes``."""
    @property
    def busiest_seconds(self) -> float:
        """See ``pccl.simulator.Replay.busiest_seconds``."""
    @property
    def peak_chunks(self) -> int:
        """See ``pccl.simulator.Replay.peak_chunks``."""
    @property
    def windows(self) -> int:
        """See ``pccl.simulator.Replay.windows``."""
    @property
    def one_for_all(self) -> bool:
        """See ``pccl.simulator.Replay.one_for_all``."""
    @property
    def critical_path(self) -> list[_StepTime]:
        """See ``pccl.simulator.Replay.critical_path``."""
    @property
    def steps(self) -> list[_StepTime]:
        """See ``pccl.simulator.Replay.steps``."""

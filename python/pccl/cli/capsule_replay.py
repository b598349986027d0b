# SPDX-License-Identifier: Apache-2.0
"""What ``pccl capsule replay`` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import simulator
from pccl.cli import terminal
from pccl.cli.capsule_run import capsule_in

if TYPE_CHECKING:
    from pccl.capsule import Capsule

__all__ = ["Program", "network_of", "replay", "speed_of"]


@dataclass(frozen=True)
class Program:
    """A capsule, or a built-in algorithm of a collective."""

    ranks: int
    capsule: Capsule | None = None
    algorithm: str = ""
    collective: str = ""
    aggregation: int = 0

    @staticmethod
    def of(name: str, ranks_of_capsule: int | None, aggregation: int) -> Program:
        """Return what a path, or ``ring:all_gather:16384``, names."""
        parts = name.split(":")
        if len(parts) != 3:
            capsule = capsule_in(Path(name), ranks_of_capsule)
            return Program(capsule.ranks[0], capsule)
        algorithm, collective, ranks = parts
        if not (ranks.isascii() and ranks.isdigit()):
            raise ValueError(f"{name!r} has {ranks!r} ranks; write ring:all_gather:1024")
        return Program(int(ranks), None, algorithm, collective, aggregation)

    def replay(self, network: simulator.Network, size: str) -> simulator.Replay:
        """Play it through."""
        if self.capsule:
            return self.capsule.replay(network, size)
        return simulator.replay(
            self.algorithm, self.collective, network, size, aggregation=self.aggregation
        )


def speed_of(gigabytes: float, start: float, hop: float) -> simulator.Speed:
    """Return a speed from GB/s and microseconds."""
    return simulator.Speed(gigabytes * 1e9, start * 1e-6, hop * 1e-6)


def network_of(
    name: str, ranks: int, port: simulator.Speed, across: simulator.Speed, ports: int
) -> simulator.Network:
    """Return the network that ``--network`` names."""
    kind, _, each = name.partition(":")
    if kind == "ring" and not each:
        return simulator.Network.ring(ranks, port, ports=ports)
    if kind == "switch" and not each:
        return simulator.Network.switch(ranks, port)
    if kind == "hosts" and each.isascii() and each.isdigit():
        return simulator.Network.hosts(ranks, int(each), port, across)
    raise ValueError(f"--network is {name!r}; there are ring, switch and hosts:8")


def replay(
    program: Program,
    network: simulator.Network,
    size: str,
    trace: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print what was found, and write the trace."""
    found = program.replay(network, size)
    if trace:
        found.save_trace(trace)
    if as_json:
        terminal.print_json(
            found.row() | {"critical_path": [step.row() for step in found.critical_path]}
        )
    else:
        print(found)

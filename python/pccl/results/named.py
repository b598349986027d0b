# SPDX-License-Identifier: Apache-2.0
"""Named tuples that calls of the extension modules return."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Charge", "LinksCountedOn", "Ports"]


class LinksCountedOn(NamedTuple):
    """Basis of the predictions of a group.

    Attributes
    ----------
    links
        Network of each host, or memory of the single host, with its GB/s and whether that was
        measured, declared or assumed: ``"eth0 of node7: 1.25 GB/s, measured"``.
    order
        Ranks by position in rings and trees.
    lanes
        Number of concurrent rings.
    costs_from
        Source of the costs of single steps, which are those of rank 0: ``"measured
        2026-11-25T21:40:03Z, load 0.1"``, or ``"defaults, nothing was measured"``; and the costs of
        TCP between hosts: ``"...; between hosts TCP takes 24.1 us and 0.85 ns a byte, measured
        2026-11-27T08:00:00Z to node0"``.
    costs
        The costs, each with its own source: ``"beat: 0.21 us, measured (a cache line handed to
        another core and back)"``.
    helpers
        Maximum number of this rank's helper threads by purpose, with the reason: ``"transfers over
        links: up to 7 helper threads, as 2 ranks share 16 cores"``; empty for a job that need not
        exist.
    """

    links: list[str]
    order: list[int]
    lanes: int
    costs_from: str
    costs: list[str]
    helpers: list[str]


class Charge(NamedTuple):
    """Share of a link's bandwidth that a path uses.

    Attributes
    ----------
    link
        Index in ``Topology.links``.
    weight
        GB/s of the link for each GB/s of the path.
    """

    link: int
    weight: float


class Ports(NamedTuple):
    """NIC ports of a channel over several nodes, by their numbers.

    Attributes
    ----------
    entry
        Port at which data from other nodes enters.
    exit
        Port at which data to other nodes leaves.
    """

    entry: int
    exit: int

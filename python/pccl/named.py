# SPDX-License-Identifier: Apache-2.0
"""What calls of the extension modules return where they return several things: by name."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Charge", "LinksCountedOn", "Ports"]


class LinksCountedOn(NamedTuple):
    """What predictions of a group rest on.

    Attributes
    ----------
    links
        The network of each host, or the memory of the one host, with its GB/s and whether that was
        measured, declared or assumed: ``"eth0 of node7: 1.25 GB/s, measured"``.
    order
        Ranks by position on rings and trees.
    lanes
        Rings that run side by side.
    costs_from
        Where the costs of single steps come from, which are rank 0's: ``"measured
        2026-11-25T21:40:03Z, load 0.1"``, or ``"defaults, nothing was measured"``; and what TCP
        takes between several hosts: ``"...; between hosts TCP takes 24.1 us and 0.85 ns a byte,
        measured 2026-11-27T08:00:00Z to node0"``.
    costs
        These costs, each with its own source: ``"beat: 0.21 us, measured (a cache line handed to
        another core and back)"``.
    """

    links: list[str]
    order: list[int]
    lanes: int
    costs_from: str
    costs: list[str]


class Charge(NamedTuple):
    """What a GB/s on a path takes of one link.

    Attributes
    ----------
    link
        Its number in ``Topology.links``.
    weight
        GB/s of that link for each GB/s on the path.
    """

    link: int
    weight: float


class Ports(NamedTuple):
    """The ports of NICs that a channel of several nodes goes through, by their numbers.

    Attributes
    ----------
    entry
        Where data of other nodes comes in.
    exit
        Where it leaves.
    """

    entry: int
    exit: int

# SPDX-License-Identifier: Apache-2.0
"""Algorithms of papers without a built-in generator, written in ``pccl.lang``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pccl.lang as pl

if TYPE_CHECKING:
    from pccl.capsule import Capsule

__all__ = ["all_pairs", "forwarded_all_to_all", "switched_halving", "two_step_all_to_all"]


@pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
def all_pairs(c: pl.Program) -> None:
    """All-pairs in two rounds: each rank sends each part to its owner, which returns the sum.

    This is the all-pairs AllReduce of "MSCCLang: Microsoft Collective Communication Language"
    (ASPLOS 2023), for small messages, where a ring needs 2(n-1) rounds.
    """
    for hop in range(1, c.ranks):
        for rank in range(c.ranks):
            owner = (rank + hop) % c.ranks
            c.input(rank, chunk=owner).reduce_to(owner, channel=hop)
    for hop in range(1, c.ranks):
        for owner in range(c.ranks):
            c.output(owner, chunk=owner).copy_to((owner + hop) % c.ranks, channel=hop)


@pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
def switched_halving(c: pl.Program) -> None:
    """Halving and doubling on a power of two of ranks, with separate circuits for each step.

    The algorithm is from "When Light Bends to the Collective Will" (arXiv 2510.08072). In phase
    ``apart4``, rank ``r`` has a circuit to and from rank ``r ^ 4``.
    """
    distances = [c.ranks >> level for level in range(1, c.ranks.bit_length())]
    held = [c.input(rank, count=c.ranks) for rank in range(c.ranks)]
    for distance in distances:
        c.switch_phase(f"apart{distance}")
        low, high = slice(0, distance), slice(distance, 2 * distance)
        held = [
            held[rank ^ distance][high if rank & distance else low].reduce_to(rank)
            for rank in range(c.ranks)
        ]
    for distance in reversed(distances):
        if distance != distances[-1]:
            c.switch_phase(f"apart{distance}")
        given = [held[rank ^ distance].copy_to(rank) for rank in range(c.ranks)]
        held = [
            pl.join(*((given[rank], own) if rank & distance else (own, given[rank])))
            for rank, own in enumerate(held)
        ]


@pl.algorithm("all_to_all")
def two_step_all_to_all(c: pl.Program, each: int) -> None:
    """All-to-all between hosts of ``each`` ranks, with one message for all blocks of a host.

    This is the Two-Step AllToAll of "MSCCLang" (ASPLOS 2023). Inside a host, the rank with the
    local number of the target collects all blocks for the target, and sends them in one message.
    """
    collected: dict[tuple[int, int], list[pl.Chunks]] = {}
    for source in range(c.ranks):
        for hop in range(c.ranks):
            target = (source + hop) % c.ranks
            x = c.input(source, target)
            if target // each == source // each:
                x.copy_to(target, channel=hop)
                continue
            relay = source // each * each + target % each
            x = x if relay == source else x.copy_to(relay, channel=hop)
            collected.setdefault((relay, target), []).append(x)
    for (relay, target), blocks in collected.items():
        pl.join(*blocks).copy_to(target, channel=(target - relay) % c.ranks)


def forwarded_all_to_all(ranks: int) -> Capsule:
    """Return an all_to_all around a unidirectional ring, which forwards blocks of other ranks.

    In round k of n-1, n-k blocks of one source go to the next rank: n(n-1)/2 blocks over each link.
    """
    steps = pl.Steps("all_to_all", ranks=ranks)
    for rank in range(ranks):
        lane = steps.lane(rank)
        after, before = (rank + 1) % ranks, (rank - 1) % ranks
        lane.copy(pl.Slice("input", rank), pl.Slice("output", rank))
        for hop in range(1, ranks):
            passed_on = pl.Slice("scratch", 0, ranks - hop)
            first = [pl.Slice("input", (rank + ahead) % ranks) for ahead in range(1, ranks)]
            lane.send(first if hop == 1 else passed_on, after)
            kept = pl.Slice("output", (rank - hop) % ranks)
            rest = ranks - hop - 1
            lane.recv(before, [kept, pl.Slice("scratch", 0, rest)] if rest else kept)
    return steps.build(f"forwarded{ranks}")

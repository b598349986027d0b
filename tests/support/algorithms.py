# SPDX-License-Identifier: Apache-2.0
"""Algorithms in ``pccl.lang``, for tests to build, break and run."""

from __future__ import annotations

import pccl.lang as pl


@pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
def ring(c: pl.Program) -> None:
    for i in range(c.ranks):
        x = c.input(i, chunk=i)
        for hop in range(1, c.ranks):
            x = x.reduce_to((i + hop) % c.ranks)
        for _ in range(1, c.ranks):
            x = x.copy_to((x.rank + 1) % c.ranks)


@pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
def all_pairs(c: pl.Program) -> None:
    for owner in range(c.ranks):
        others = [rank for rank in range(c.ranks) if rank != owner]
        for rank in others:
            c.input(rank, chunk=owner).reduce_to(owner, channel=rank % 2)
        for rank in others:
            c.output(owner, chunk=owner).copy_to(rank, channel=rank % 3)


@pl.algorithm("reduce_scatter", chunks=2)
def ring_reduce_scatter(c: pl.Program) -> None:
    for block in range(c.ranks):
        x = c.input((block + 1) % c.ranks, chunk=block * c.chunks, count=c.chunks)
        for hop in range(2, c.ranks + 1):
            x = x.reduce_to((block + hop) % c.ranks)


@pl.algorithm("all_gather")
def doubling_all_gather(c: pl.Program) -> None:
    """For powers of two: what a rank has goes to its partner, in one message of many chunks."""
    have = [[c.input(rank).copy_to(rank)] for rank in range(c.ranks)]
    distance = 1
    while distance < c.ranks:
        before = [list(each) for each in have]
        for rank in range(c.ranks):
            partner = rank ^ distance
            got = pl.join(*before[rank]).copy_to(partner)
            have[partner] += [got[i] for i in range(len(got))]
        distance *= 2


@pl.algorithm("broadcast", root=1, chunks=3)
def chain_broadcast(c: pl.Program) -> None:
    for chunk in range(c.chunks):
        x = c.input(c.root, chunk)
        x.copy_to(c.root)
        for hop in range(1, c.ranks):
            x = x.copy_to((c.root + hop) % c.ranks)


@pl.algorithm("reduce", root=1, chunks=2)
def star_reduce(c: pl.Program) -> None:
    for rank in range(c.ranks):
        if rank != c.root:
            c.input(rank, count=c.chunks).reduce_to(c.root)


@pl.algorithm("gather", root=1)
def chain_gather(c: pl.Program) -> None:
    """Every block goes round to the root, through ranks that have no output."""
    c.input(c.root).copy_to(c.root)
    for rank in range(c.ranks):
        x = c.input(rank)
        while x.rank != c.root:
            x = x.copy_to((x.rank + 1) % c.ranks)


@pl.algorithm("scatter", root=1, chunks=2)
def star_scatter(c: pl.Program) -> None:
    for rank in range(c.ranks):
        c.input(c.root, rank * c.chunks, c.chunks).copy_to(rank)


@pl.algorithm("all_to_all")
def relayed_all_to_all(c: pl.Program) -> None:
    """Every block but a rank's own goes by way of the rank before its target."""
    for source in range(c.ranks):
        for target in range(c.ranks):
            x = c.input(source, chunk=target)
            relay = (target - 1) % c.ranks
            if relay != source and target != source:
                x = x.copy_to(relay)
            x.copy_to(target)


@pl.algorithm("all_reduce", chunks=2)
def through_scratch(c: pl.Program) -> None:
    """Rank 0 adds up in scratch that it numbers itself."""
    room = c.scratch(0, 2, 2)
    total = c.input(0, count=2).copy_to(room)
    for rank in range(1, c.ranks):
        total = c.input(rank, count=2).reduce_to(total)
    for rank in range(c.ranks):
        total.copy_to(rank)


@pl.algorithm("all_reduce")
def composed(c: pl.Program) -> None:
    """A chain to rank 0, and a star from there: two functions of plain Python."""
    total = to_rank_0(c)
    for rank in range(1, c.ranks):
        total.copy_to(rank)


def to_rank_0(c: pl.Program) -> pl.Chunks:
    x = c.input(c.ranks - 1)
    for rank in reversed(range(c.ranks - 1)):
        x = x.reduce_to(rank)
    return x


def two_rank_steps() -> pl.Steps:
    """An all_reduce of two ranks, step by step: each sends, and a second lane adds."""
    steps = pl.Steps("all_reduce", ranks=2)
    for rank in range(2):
        whole = pl.Slice("input", 0)
        sends, adds = steps.lane(rank), steps.lane(rank)
        sent = sends.send(whole, 1 - rank)
        adds.recv_reduce(1 - rank, pl.Slice("output", 0), src=whole, after=sent)
    return steps


ALGORITHMS = (
    ring,
    all_pairs,
    ring_reduce_scatter,
    doubling_all_gather,
    chain_broadcast,
    star_reduce,
    chain_gather,
    star_scatter,
    relayed_all_to_all,
    through_scratch,
    composed,
)

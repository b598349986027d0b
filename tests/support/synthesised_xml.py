# SPDX-License-Identifier: Apache-2.0
"""MSCCL's XML in the dialect of those who search for algorithms: TACCL, and TE-CCL by its writer.

They know which chunk goes from where to where in which epoch. Chunks that a rank gets and has are
found in its output, and a <copy> tells where they come from; chunks that only pass through lie in
scratch. A <tb> has a peer to send to and one to receive from, which need not have to do with each
other, but does not do both in one epoch. A step that waits for several has steps of type "nop"
before it, and one that receives names where its sender has the data.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.msccl_xml import Algo, Block

if TYPE_CHECKING:
    from collections.abc import Iterable

Place = tuple[str, int]


@dataclass(frozen=True)
class Sent:
    """A chunk, by its address, that goes from one rank to another; ``adds`` it there."""

    address: int
    src: int
    dst: int
    adds: bool = False


@dataclass(eq=False)
class Op:
    """A step of a <tb>."""

    epoch: int
    kind: str
    src: Place
    dst: Place
    waits: list[Op] = field(default_factory=list)
    block: Block | None = None
    index: int = -1


@dataclass
class Problem:
    """The addresses that each rank begins with and ends with, in the order of its buffers."""

    coll: str
    inplace: int
    chunks: int
    inputs: list[list[int]]
    outputs: list[list[int]]


class Writer:
    """Makes an algorithm of what is sent in each epoch."""

    def __init__(self, problem: Problem, name: str) -> None:
        ranks = len(problem.inputs)
        self.algo = Algo(name, problem.coll, ranks, problem.chunks, problem.inplace)
        self.places: list[dict[int, Place]] = []
        for rank in range(ranks):
            outputs = {each: index for index, each in enumerate(problem.outputs[rank])}
            inputs = {each: index for index, each in enumerate(problem.inputs[rank])}
            self.algo.copies[rank] = [(at, outputs[a]) for a, at in inputs.items() if a in outputs]
            self.places.append(
                {address: ("i", at) for address, at in inputs.items()}
                | {address: ("o", at) for address, at in outputs.items()}
            )
        self.scratch = [0] * ranks
        self.writers: dict[tuple[int, Place], list[Op]] = defaultdict(list)
        self.readers: dict[tuple[int, Place], list[Op]] = defaultdict(list)
        self.groups: dict[tuple[int, bool, int], list[Op]] = defaultdict(list)

    def place(self, rank: int, address: int) -> Place:
        places = self.places[rank]
        if address not in places:
            places[address] = ("s", self.scratch[rank])
            self.scratch[rank] += 1
        return places[address]

    def send(self, epoch: int, sent: Sent) -> None:
        src, dst = self.place(sent.src, sent.address), self.place(sent.dst, sent.address)
        read, written = (sent.src, src), (sent.dst, dst)
        out = Op(epoch, "s", src, dst, list(self.writers[read]))
        kind = "rrc" if sent.adds else "r"
        got = Op(epoch, kind, src, dst, [*self.readers[written], *self.writers[written]])
        self.groups[sent.src, True, sent.dst].append(out)
        self.groups[sent.dst, False, sent.src].append(got)
        self.readers[read].append(out)
        self.writers[written], self.readers[written] = [got], []

    def finish(self) -> Algo:
        self.algo.scratch = max(self.scratch)
        ops: dict[int, list[Op]] = defaultdict(list)
        for (rank, sends, peer), group in self.groups.items():
            block = self.block_for(rank, sends, peer, {op.epoch for op in group}, ops)
            for op in group:
                op.block = block
            ops[id(block)] += group
        for blocks in self.algo.blocks:
            for block in blocks:
                ops[id(block)].sort(key=lambda op: op.epoch)
                number(ops[id(block)])
        for blocks in self.algo.blocks:
            for block in blocks:
                for op in ops[id(block)]:
                    write(block, op)
        return self.algo

    def block_for(
        self, rank: int, sends: bool, peer: int, epochs: set[int], ops: dict[int, list[Op]]
    ) -> Block:
        """One that has no such peer yet, and nothing in the same epochs; else another."""
        for block in self.algo.blocks[rank]:
            if (block.send if sends else block.recv) != -1:
                continue
            if epochs.isdisjoint(op.epoch for op in ops[id(block)]):
                block.send, block.recv = (peer, block.recv) if sends else (block.send, peer)
                return block
        return self.algo.tb(rank, peer if sends else -1, -1 if sends else peer)


def number(ops: list[Op]) -> None:
    """A <nop> for each but one of those that a step waits for, of other <tb>s."""
    index = 0
    for op in ops:
        op.waits = [other for other in op.waits if other.block is not op.block]
        op.index = index + max(len(op.waits) - 1, 0)
        index = op.index + 1


def write(block: Block, op: Op) -> None:
    waits: list[tuple[int, int]] = []
    for other in op.waits:
        assert other.block is not None
        waits.append((other.block.id, other.index))
    for wait in waits[1:]:
        block.add("nop", count=0, after=wait)
    _, index = block.add(op.kind, op.src, op.dst, after=waits[0] if waits else None)
    assert index == op.index


def written(problem: Problem, name: str, epochs: Iterable[Iterable[Sent]]) -> Algo:
    writer = Writer(problem, name)
    for epoch, sends in enumerate(epochs):
        for sent in sends:
            writer.send(epoch, sent)
    return writer.finish()


def gathering(ranks: int, parts: int = 1) -> Problem:
    each = [[rank * parts + part for part in range(parts)] for rank in range(ranks)]
    everything = list(range(ranks * parts))
    return Problem("allgather", 1, ranks * parts, each, [everything] * ranks)


def all_gather_both_ways(ranks: int) -> Algo:
    """Two chunks each, one of which goes around to the right, the other to the left."""
    epochs = [
        [
            Sent(2 * ((rank - way * hop) % ranks) + part, rank, (rank + way) % ranks)
            for rank in range(ranks)
            for part, way in ((0, 1), (1, -1))
        ]
        for hop in range(ranks - 1)
    ]
    algo = written(gathering(ranks, 2), "teccl", epochs)
    algo.later = {"outofplace": 0, "minBytes": 1024, "maxBytes": 100000000000, "redop": "nop"}
    return algo


def all_gather_over_gateways(hosts: int, gpus: int) -> Algo:
    """GPU 0 of a host sends to the other hosts, and hands on what comes from there."""
    ranks = hosts * gpus
    within = [
        Sent(rank, rank, peer)
        for rank in range(ranks)
        for peer in range(rank // gpus * gpus, rank // gpus * gpus + gpus)
        if peer != rank
    ]
    between = [
        Sent(host * gpus + gpu, host * gpus, other * gpus)
        for host in range(hosts)
        for other in range(hosts)
        for gpu in range(gpus)
        if other != host
    ]
    onwards = [
        Sent(address, host * gpus, host * gpus + gpu)
        for host in range(hosts)
        for address in range(ranks)
        for gpu in range(1, gpus)
        if address // gpus != host
    ]
    return written(gathering(ranks), "taccl", [within, between, onwards])


def all_to_all_around(ranks: int) -> Algo:
    """Each chunk goes around a ring to whom it is for, through scratch of those between."""
    problem = Problem(
        "alltoall",
        0,
        ranks,
        [[rank * ranks + peer for peer in range(ranks)] for rank in range(ranks)],
        [[peer * ranks + rank for peer in range(ranks)] for rank in range(ranks)],
    )
    epochs = [
        [
            Sent(source * ranks + target, (source + hop) % ranks, (source + hop + 1) % ranks)
            for source in range(ranks)
            for target in range(ranks)
            if (target - source) % ranks > hop
        ]
        for hop in range(ranks - 1)
    ]
    return written(problem, "taccl", epochs)


def all_to_all_with_scratch_behind_the_output(ranks: int) -> Algo:
    algo = all_to_all_around(ranks)
    for blocks in algo.blocks:
        for block in blocks:
            for step in block.steps:
                for buffer, offset in (("srcbuf", "srcoff"), ("dstbuf", "dstoff")):
                    if step[buffer] == "s":
                        step.update({buffer: "o", offset: int(str(step[offset])) + ranks})
    return algo


def ring_sums(ranks: int) -> list[list[Sent]]:
    return [
        [Sent((rank - hop) % ranks, rank, (rank + 1) % ranks, adds=True) for rank in range(ranks)]
        for hop in range(1, ranks)
    ]


def all_reduce_in_two(ranks: int) -> Algo:
    """Sums around a ring, which then go around once more."""
    everything = [list(range(ranks))] * ranks
    copies = [
        [Sent((rank - hop) % ranks, rank, (rank + 1) % ranks) for rank in range(ranks)]
        for hop in range(ranks - 1)
    ]
    problem = Problem("allreduce", 1, ranks, everything, everything)
    return written(problem, "taccl", [*ring_sums(ranks), *copies])


def reduce_scatter_around(ranks: int) -> Algo:
    own = [[rank] for rank in range(ranks)]
    problem = Problem("reduce_scatter", 1, ranks, [list(range(ranks))] * ranks, own)
    return written(problem, "taccl", ring_sums(ranks))


def programs() -> list[Algo]:
    return [
        all_gather_both_ways(4),
        all_gather_over_gateways(2, 3),
        all_to_all_around(4),
        all_to_all_with_scratch_behind_the_output(5),
        all_reduce_in_two(4),
        reduce_scatter_around(4),
    ]

# SPDX-License-Identifier: Apache-2.0
"""Programs in MSCCL's XML, made by code: known algorithms, as its compiler would write them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Block:
    """A <tb>."""

    id: int
    send: int
    recv: int
    chan: int
    steps: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        kind: str,
        src: tuple[str, int] = ("i", -1),
        dst: tuple[str, int] = ("o", -1),
        count: int = 1,
        after: tuple[int, int] | None = None,
    ) -> tuple[int, int]:
        """Add a step; give its place, for others to wait for."""
        self.steps.append(
            {
                "s": len(self.steps),
                "type": kind,
                "srcbuf": src[0],
                "srcoff": src[1],
                "dstbuf": dst[0],
                "dstoff": dst[1],
                "cnt": count,
                "depid": after[0] if after else -1,
                "deps": after[1] if after else -1,
                "hasdep": 0,
            }
        )
        return self.id, len(self.steps) - 1


@dataclass
class Algo:
    """An <algo>; ``later`` are attributes that came later."""

    name: str
    coll: str
    ranks: int
    chunks: int
    inplace: int = 0
    proto: str = "Simple"
    later: dict[str, object] = field(default_factory=dict)
    scratch: int = 0
    blocks: list[list[Block]] = field(default_factory=list)
    copies: list[list[tuple[int, int]]] = field(default_factory=list)  # <copy>s, by gpu

    def __post_init__(self) -> None:
        self.blocks = [[] for _ in range(self.ranks)]
        self.copies = [[] for _ in range(self.ranks)]

    def tb(self, gpu: int, send: int = -1, recv: int = -1, chan: int = 0) -> Block:
        """Add a <tb> to a <gpu>."""
        block = Block(len(self.blocks[gpu]), send, recv, chan)
        self.blocks[gpu].append(block)
        return block

    def xml(self) -> str:
        """An element a line."""
        later = "".join(f' {key}="{value}"' for key, value in self.later.items())
        lines = [
            f'<algo name="{self.name}" proto="{self.proto}" nchannels="1" '
            f'nchunksperloop="{self.chunks}" ngpus="{self.ranks}" coll="{self.coll}" '
            f'inplace="{self.inplace}"{later}>'
        ]
        for gpu, blocks in enumerate(self.blocks):
            lines.append(
                f'  <gpu id="{gpu}" i_chunks="{self.chunks}" o_chunks="{self.chunks}" '
                f's_chunks="{self.scratch}">'
            )
            lines.extend(f'    <copy i_off="{i}" o_off="{o}"/>' for i, o in self.copies[gpu])
            for block in blocks:
                lines.append(
                    f'    <tb id="{block.id}" send="{block.send}" recv="{block.recv}" '
                    f'chan="{block.chan}">'
                )
                for step in block.steps:
                    fields = " ".join(f'{key}="{value}"' for key, value in step.items())
                    lines.append(f"      <step {fields}/>")
                lines.append("    </tb>")
            lines.append("  </gpu>")
        return "\n".join([*lines, "</algo>", ""])


def ring_all_reduce(
    ranks: int, *, inplace: int = 0, channels: int = 1, proto: str = "Simple"
) -> Algo:
    algo = Algo(f"Ring AR {ranks}", "allreduce", ranks, ranks * channels, inplace, proto)
    result = "i" if inplace else "o"
    for gpu in range(ranks):
        for channel in range(channels):
            tb = algo.tb(gpu, (gpu + 1) % ranks, (gpu - 1) % ranks, channel)

            def chunk(back: int, gpu: int = gpu, channel: int = channel) -> int:
                return (gpu - back) % ranks * channels + channel

            tb.add("s", ("i", chunk(0)))
            for hop in range(1, ranks - 1):
                tb.add("rrs", ("i", chunk(hop)))
            last = chunk(ranks - 1)
            tb.add("rrcs", ("i", last), (result, last))
            for hop in range(ranks - 2):
                tb.add("rcs", dst=(result, chunk(hop)))
            tb.add("r", dst=(result, chunk(ranks - 2)))
    return algo


def all_pairs_all_reduce(ranks: int, proto: str = "LL") -> Algo:
    """Everybody gets a part of each, in scratch, adds up and gives the sums to all."""
    algo = Algo(f"allpairs{ranks}", "allreduce", ranks, ranks, 0, proto, scratch=ranks)
    algo.later = {"minBytes": 1024, "maxBytes": 65536, "outofplace": 1}
    for gpu in range(ranks):
        adder = algo.tb(gpu)
        done = adder.add("cpy", ("i", gpu), ("o", gpu))
        peers = [peer for peer in range(ranks) if peer != gpu]
        pairs = [(peer, algo.tb(gpu, peer, peer)) for peer in peers]
        for peer, tb in pairs:
            tb.add("s", ("i", peer))
            got = tb.add("r", dst=("s", peer))
            done = adder.add("re", ("s", peer), ("o", gpu), after=got)
        for peer, tb in pairs:
            tb.add("s", ("o", gpu), after=done)
            tb.add("r", dst=("o", peer))
    return algo


def ring_all_gather(ranks: int, *, inplace: int = 0, chunks: int = 1) -> Algo:
    algo = Algo(f"ring_ag_{ranks}", "allgather", ranks, ranks * chunks, inplace)
    for gpu in range(ranks):
        tb = algo.tb(gpu, (gpu + 1) % ranks, (gpu - 1) % ranks)
        tb.add("s", ("i", 0), count=chunks)
        for hop in range(1, ranks - 1):
            tb.add("rcs", dst=("o", (gpu - hop) % ranks * chunks), count=chunks)
        tb.add("r", dst=("o", (gpu + 1) % ranks * chunks), count=chunks)
        if not inplace:
            algo.tb(gpu).add("cpy", ("i", 0), ("o", gpu * chunks), count=chunks)
    return algo


def doubling_all_gather(ranks: int) -> Algo:
    """For powers of two; what was got is sent on from the output."""
    algo = Algo(f"rd_ag_{ranks}", "all_gather", ranks, ranks, proto="LL128")
    for gpu in range(ranks):
        own = algo.tb(gpu).add("cpy", ("i", 0), ("o", gpu))
        distance, before = 1, own
        while distance < ranks:
            peer = gpu ^ distance
            have, get = gpu // distance * distance, peer // distance * distance
            tb = algo.tb(gpu, peer, peer)
            tb.add("s", ("o", have), count=distance, after=before)
            before = tb.add("r", dst=("o", get), count=distance)
            distance *= 2
            # Steps wait for one other each: the last one waits for those before.
    return algo


def ring_reduce_scatter(ranks: int, *, inplace: int = 0) -> Algo:
    algo = Algo(f"ring_rs_{ranks}", "reduce_scatter", ranks, ranks, inplace)
    for gpu in range(ranks):
        tb = algo.tb(gpu, (gpu + 1) % ranks, (gpu - 1) % ranks)
        tb.add("s", ("i", (gpu - 1) % ranks))
        for hop in range(2, ranks):
            chunk = (gpu - hop) % ranks
            if inplace:
                tb.add("rrcs", ("i", chunk), ("i", chunk))
            else:
                tb.add("rrs", ("i", chunk))
        tb.add("rrc", ("i", gpu), ("i", gpu) if inplace else ("o", 0))
    return algo


def direct_all_to_all(ranks: int) -> Algo:
    algo = Algo(f"a2a_{ranks}", "alltoall", ranks, ranks)
    for gpu in range(ranks):
        algo.tb(gpu).add("cpy", ("i", gpu), ("o", gpu))
        for peer in range(ranks):
            if peer != gpu:
                tb = algo.tb(gpu, peer, peer)
                tb.add("s", ("i", peer))
                tb.add("r", dst=("o", peer))
    return algo


def grouped_all_to_all(hosts: int, gpus: int) -> Algo:
    """In two steps: within a host to the GPU of the target's number, then across."""
    ranks = hosts * gpus
    algo = Algo(f"a2a_{hosts}x{gpus}", "alltoall", ranks, ranks, scratch=ranks)
    for rank in range(ranks):
        host, gpu = divmod(rank, gpus)
        within = {
            peer: algo.tb(rank, host * gpus + peer, host * gpus + peer)
            for peer in range(gpus)
            if peer != gpu
        }
        own = algo.tb(rank)
        collected = {}
        for source in range(gpus):
            for target in range(hosts):
                place = ("s", target * gpus + source)
                if source == gpu:
                    collected[source] = own.add("cpy", ("i", target * gpus + gpu), place)
                else:
                    tb = within[source]
                    tb.add("s", ("i", target * gpus + source))
                    collected[source] = tb.add("r", dst=place)
        gate = algo.tb(rank)
        ready = (gate.id, 0)
        for source in range(gpus):
            ready = gate.add("nop", count=0, after=collected[source])
        for target in range(hosts):
            if target == host:
                for source in range(gpus):
                    place = target * gpus + source
                    own.add("cpy", ("s", place), ("o", place), after=ready)
                continue
            tb = algo.tb(rank, target * gpus + gpu, target * gpus + gpu, 1)
            tb.add("s", ("s", target * gpus), count=gpus, after=ready)
            tb.add("r", dst=("o", target * gpus), count=gpus)
    return algo


def chain_broadcast(ranks: int, chunks: int) -> Algo:
    algo = Algo(f"bcast_{ranks}", "broadcast", ranks, chunks)
    for gpu in range(ranks):
        tb = algo.tb(gpu, gpu + 1 if gpu + 1 < ranks else -1, gpu - 1)
        for chunk in range(chunks):
            if gpu == 0:
                tb.add("s", ("i", chunk))
            elif gpu + 1 < ranks:
                tb.add("rcs", dst=("o", chunk))
            else:
                tb.add("r", dst=("o", chunk))
    algo.tb(0).add("cpy", ("i", 0), ("o", 0), count=chunks)
    return algo


def programs() -> list[Algo]:
    """Twenty and more, each another program."""
    return [
        *(ring_all_reduce(ranks) for ranks in (2, 3, 4, 8)),
        *(ring_all_reduce(ranks, inplace=1, proto="LL128") for ranks in (2, 4)),
        ring_all_reduce(4, channels=2, proto="LL"),
        ring_all_reduce(3, channels=4, inplace=1),
        *(all_pairs_all_reduce(ranks) for ranks in (2, 4, 8)),
        *(ring_all_gather(ranks) for ranks in (2, 5)),
        ring_all_gather(4, inplace=1),
        ring_all_gather(3, inplace=1, chunks=2),
        *(doubling_all_gather(ranks) for ranks in (2, 4, 8)),
        *(ring_reduce_scatter(ranks) for ranks in (2, 6)),
        ring_reduce_scatter(4, inplace=1),
        *(direct_all_to_all(ranks) for ranks in (2, 4)),
        grouped_all_to_all(2, 2),
        grouped_all_to_all(2, 4),
        chain_broadcast(4, 3),
    ]

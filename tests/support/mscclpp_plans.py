# SPDX-License-Identifier: Apache-2.0
"""Execution plans of MSCCL++, made by code: known algorithms, as its compiler would write them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# A buffer ("i", "o" or "s") and a chunk; of a GPU, or of the one that does it.
Local = tuple[str, int]
Remote = tuple[int, str, int]


@dataclass
class Block:
    """A thread block of one GPU; connections and remote buffers get their numbers at the end."""

    gpu: int
    ops: list[dict[str, Any]] = field(default_factory=list)
    loop_chunks: int = 0  # that all of it goes over as one pipeline

    def op(
        self,
        name: str,
        src: list[Local | Remote] | None = None,
        dst: list[Local | Remote] | None = None,
        *,
        peers: list[int] | None = None,
        connection: int = 0,
        channel_type: str = "memory",
        size: int = 1,
        **fields: Any,
    ) -> Block:
        """Add an operation; ``size`` is how many chunks each of its runs has."""
        self.ops.append(
            {
                "name": name,
                "size": size,
                "src": src or [],
                "dst": dst or [],
                "peers": [(channel_type, peer, connection) for peer in peers or []],
                "channel_type": channel_type,
                "fields": fields,
            }
        )
        return self

    def signal(self, *peers: int, **options: Any) -> Block:
        return self.op("signal", peers=list(peers), **options)

    def wait(self, *peers: int, **options: Any) -> Block:
        return self.op("wait", peers=list(peers), **options)


@dataclass
class Plan:
    """A plan; chunks are those of a whole buffer."""

    name: str
    collective: str
    ranks: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int = 0
    inplace: bool = False
    protocol: str = "Simple"
    later: dict[str, Any] = field(default_factory=dict)
    semaphores: list[int] = field(default_factory=list)
    blocks: list[list[Block]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blocks = [[] for _ in range(self.ranks)]

    def block(self, gpu: int) -> Block:
        block = Block(gpu)
        self.blocks[gpu].append(block)
        return block

    def others(self, gpu: int) -> list[int]:
        return [(gpu + hop) % self.ranks for hop in range(1, self.ranks)]

    def value(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "collective": self.collective,
            "protocol": self.protocol,
            "inplace": self.inplace,
            "reuse_resources": False,
            "num_threads_per_block": 1024,
            "use_double_scratch_buffer": False,
            "buffer_alignment": 16,
            "min_message_size": 0,
            "max_message_size": 18446744073709551615,
            **self.later,
            "gpus": [self._gpu(gpu) for gpu in range(self.ranks)],
        }

    def text(self) -> str:
        return json.dumps(self.value())

    def _connections(self, gpu: int) -> list[tuple[str, int, int]]:
        """Those that it uses, and those that others use to it."""
        used = {
            key if block.gpu == gpu else (key[0], block.gpu, key[2])
            for blocks in self.blocks
            for block in blocks
            for op in block.ops
            for key in op["peers"]
            if block.gpu == gpu or key[1] == gpu
        }
        return sorted(used)

    def _gpu(self, gpu: int) -> dict[str, Any]:
        connections = self._connections(gpu)
        by_type = {
            kind: [each for each in connections if each[0] == kind] for kind in ("memory", "port")
        }
        remotes = sorted(
            {
                (ref[0], ref[1], op["channel_type"])
                for block in self.blocks[gpu]
                for op in block.ops
                for ref in (*op["src"], *op["dst"])
                if len(ref) == 3
            }
        )
        return {
            "id": gpu,
            "input_chunks": self.input_chunks,
            "output_chunks": self.output_chunks,
            "scratch_chunks": self.scratch_chunks,
            "channels": [
                {"channel_type": kind, "connected_to": [peer for _, peer, _ in known]}
                for kind, known in by_type.items()
                if known
            ],
            "remote_buffers": [
                {"rank": rank, "type": buffer, "access_channel_types": [kind]}
                for rank, buffer, kind in remotes
            ],
            "semaphores": [{"init_value": value} for value in self.semaphores],
            "threadblocks": [
                self._block(number, block, by_type, remotes)
                for number, block in enumerate(self.blocks[gpu])
            ],
        }

    def _block(
        self,
        number: int,
        block: Block,
        by_type: dict[str, list[tuple[str, int, int]]],
        remotes: list[tuple[int, str, str]],
    ) -> dict[str, Any]:
        """Its channels and buffers are numbered among its own, in the order of their first use."""
        own: dict[str, list[tuple[str, int, int]]] = {"memory": [], "port": []}
        buffers: dict[str, list[tuple[int, str, str]]] = {"memory": [], "port": []}

        def number_in(known: list[Any], key: Any) -> int:
            if key not in known:
                known.append(key)
            return known.index(key)

        def chunk(op: dict[str, Any], ref: Local | Remote) -> dict[str, Any]:
            if len(ref) == 2:
                return {"type": ref[0], "index": ref[1], "size": op["size"]}
            kind = op["channel_type"]
            key = (ref[0], ref[1], kind)
            number = number_in(buffers[kind], key)
            return {"buffer_id": number, "index": ref[2], "size": op["size"]}

        def written(op: dict[str, Any]) -> dict[str, Any]:
            made: dict[str, Any] = {"name": op["name"], **op["fields"]}
            for side in ("src", "dst"):
                if op[side]:
                    made[f"{side}_buff"] = [chunk(op, ref) for ref in op[side]]
            if op["peers"]:
                made["channel_ids"] = [number_in(own[key[0]], key) for key in op["peers"]]
            if op["peers"] or any(len(ref) == 3 for ref in (*op["src"], *op["dst"])):
                made["channel_type"] = op["channel_type"]
            return made

        ops = [written(op) for op in block.ops]
        loop = block.loop_chunks
        if loop:
            context = {"unit_size": 1 << 20, "num_chunks": loop}
            ops = [{"name": "pipeline", "iter_context": context, "ops": ops}]
        return {
            "id": number,
            "ops": ops,
            "channels": [
                {"channel_type": kind, "channel_ids": [by_type[kind].index(each) for each in known]}
                for kind, known in own.items()
                if known
            ],
            "remote_buffer_refs": [
                {
                    "access_channel_type": kind,
                    "remote_buffer_ids": [remotes.index(each) for each in known],
                }
                for kind, known in buffers.items()
                if known
            ],
        }


def put_all_gather(ranks: int) -> Plan:
    """Every rank writes its block to all others."""
    plan = Plan("allgather", "allgather", ranks, 1, ranks)
    for gpu in range(ranks):
        block = plan.block(gpu).op("copy", [("i", 0)], [("o", gpu)])
        for peer in plan.others(gpu):
            block.op("put", [("i", 0)], [(peer, "o", gpu)])
        block.signal(*plan.others(gpu)).wait(*plan.others(gpu))
    return plan


def port_all_gather(ranks: int, inplace: bool = True) -> Plan:
    """A thread block for each peer; puts that signal, over ports."""
    plan = Plan("allgather port", "allgather", ranks, 1, ranks, inplace=inplace)
    for gpu in range(ranks):
        if not inplace:
            plan.block(gpu).op("copy", [("i", 0)], [("o", gpu)])
        for peer in plan.others(gpu):
            block = plan.block(gpu)
            block.op(
                "pwsf", [("i", 0)], [(peer, "o", gpu)], peers=[peer], channel_type="port"
            ).wait(peer, channel_type="port")
    return plan


def ring_all_gather(ranks: int) -> Plan:
    """Blocks go round: what has come is written on to the next."""
    plan = Plan("allgather ring", "allgather", ranks, 1, ranks)
    for gpu in range(ranks):
        after, before = (gpu + 1) % ranks, (gpu - 1) % ranks
        block = plan.block(gpu).op("copy", [("i", 0)], [("o", gpu)])
        for hop in range(ranks - 1):
            chunk = (gpu - hop) % ranks
            block.op("put", [("o", chunk)], [(after, "o", chunk)])
            block.signal(after).wait(before)
    return plan


def one_shot_all_reduce(ranks: int) -> Plan:
    """Packets of all to all, and each adds up."""
    plan = Plan("allreduce packets", "allreduce", ranks, 1, 1, scratch_chunks=ranks, protocol="LL")
    plan.later = {"max_message_size": 65536}
    for gpu in range(ranks):
        block = plan.block(gpu)
        for peer in plan.others(gpu):
            block.op("ppkt", [("i", 0)], [(peer, "s", gpu)])
        packets: list[Local | Remote] = [("s", peer) for peer in plan.others(gpu)]
        block.op("repkt", [("i", 0), *packets], [("o", 0)])
    return plan


def two_shot_all_reduce(ranks: int) -> Plan:
    """Packets of each part to its owner, who adds up and sends packets to all."""
    plan = Plan(
        "allreduce pkt 2", "allreduce", ranks, ranks, ranks, scratch_chunks=2 * ranks, protocol="LL"
    )
    for gpu in range(ranks):
        block = plan.block(gpu)
        for peer in plan.others(gpu):
            block.op("ppkt", [("i", peer)], [(peer, "s", gpu)])
        packets: list[Local | Remote] = [("s", peer) for peer in plan.others(gpu)]
        homes: list[Local | Remote] = [(peer, "s", ranks + gpu) for peer in plan.others(gpu)]
        block.op("respkt", [("i", gpu), *packets], [("o", gpu), *homes])
        for peer in plan.others(gpu):
            block.op("upkt", [("s", ranks + peer)], [("o", peer)])
    return plan


def reading_all_reduce(ranks: int) -> Plan:
    """Each reads and adds its part of all others, and then the sums of all others."""
    plan = Plan("allreduce read", "allreduce", ranks, ranks, ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        block = plan.block(gpu).signal(*others).wait(*others)
        remote: list[Local | Remote] = [(peer, "i", gpu) for peer in others]
        block.op("rre", [("i", gpu), *remote], [("o", gpu)])
        block.signal(*others).wait(*others)
        for peer in others:
            block.op("get", [(peer, "o", peer)], [("o", peer)])
        block.signal(*others).wait(*others)
    return plan


def inplace_all_reduce(ranks: int) -> Plan:
    """In the input: each adds its part of all others, and writes the sum to them."""
    plan = Plan("allreduce rres", "allreduce", ranks, ranks, ranks, inplace=True)
    for gpu in range(ranks):
        others = plan.others(gpu)
        block = plan.block(gpu).op("rlxsignal", peers=others).op("rlxwait", peers=others)
        remote: list[Local | Remote] = [(peer, "i", gpu) for peer in others]
        block.op("rres", [("i", gpu), *remote], [("i", gpu), *remote])
        block.signal(*others).wait(*others)
    return plan


def scratch_reduce_scatter(ranks: int) -> Plan:
    """Parts are put into scratch and added there."""
    plan = Plan("reducescatter", "reducescatter", ranks, ranks, 1, scratch_chunks=ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        block = plan.block(gpu)
        for peer in others:
            block.op("put", [("i", peer)], [(peer, "s", gpu)])
        block.signal(*others).wait(*others)
        came: list[Local | Remote] = [("s", peer) for peer in others]
        block.op("re", [("i", gpu), *came], [("o", 0)])
    return plan


def put_all_to_all(ranks: int) -> Plan:
    """Every block straight to its place; a thread block sends and another waits."""
    plan = Plan("alltoall", "alltoall", ranks, ranks, ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        sends, waits = plan.block(gpu), plan.block(gpu)
        for peer in others:
            sends.op("put", [("i", peer)], [(peer, "o", gpu)])
        sends.signal(*others).op("flush", peers=others)
        waits.op("copy", [("i", gpu)], [("o", gpu)]).wait(*others)
    return plan


def barrier_all_reduce(ranks: int) -> Plan:
    """Of a thread block for each peer, which meet before one of them adds up."""
    plan = Plan("allreduce barrier", "allreduce", ranks, 1, 1, scratch_chunks=ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        barrier = {"barrier_id": 0, "num_threadblocks": len(others)}
        for peer in others:
            block = plan.block(gpu).op("put", [("i", 0)], [(peer, "s", gpu)])
            block.signal(peer).wait(peer).op("barrier", **barrier)
        came: list[Local | Remote] = [("s", peer) for peer in others]
        plan.blocks[gpu][0].op("re", [("i", 0), *came], [("o", 0)])
    return plan


def semaphore_all_gather(ranks: int) -> Plan:
    """One thread block fetches the own block to the output, another gives it away from there."""
    plan = Plan("allgather sem", "allgather", ranks, 1, ranks, semaphores=[0])
    for gpu in range(ranks):
        others = plan.others(gpu)
        plan.block(gpu).op("copy", [("i", 0)], [("o", gpu)]).op("sem_release", semaphore_ids=[0])
        block = plan.block(gpu).op("sem_acquire", semaphore_ids=[0])
        for peer in others:
            block.op("put", [("o", gpu)], [(peer, "o", gpu)])
        block.signal(*others).wait(*others)
    return plan


def sending_ring_all_reduce(ranks: int) -> Plan:
    """A ring that adds and sends in one operation."""
    plan = Plan("allreduce ring", "allreduce", ranks, ranks, ranks, scratch_chunks=ranks)
    for gpu in range(ranks):
        after, before = (gpu + 1) % ranks, (gpu - 1) % ranks
        block = plan.block(gpu)
        block.op("put", [("i", gpu)], [(after, "s", gpu)]).signal(after)
        for hop in range(1, ranks):
            chunk = (gpu - hop) % ranks
            place = "s" if hop < ranks - 1 else "o"
            block.wait(before)
            block.op(
                "res", [("s", chunk), ("i", chunk)], [("o", chunk), (after, place, chunk)]
            ).signal(after)
        for hop in range(ranks - 1):
            block.wait(before)
            chunk = (gpu - hop) % ranks
            if hop < ranks - 2:
                block.op("put", [("o", chunk)], [(after, "o", chunk)]).signal(after)
    return plan


def forwarded_all_gather(ranks: int) -> Plan:
    """One thread block makes packets, another forwards them to all at once, a third unpacks."""
    plan = Plan("allgather rppkt", "allgather", ranks, 1, ranks, ranks, inplace=True, protocol="LL")
    for gpu in range(ranks):
        others = plan.others(gpu)
        plan.block(gpu).op("cpkt", [("o", gpu)], [("s", gpu)])
        plan.block(gpu).op("rppkt", [("s", gpu)], [(peer, "s", gpu) for peer in others])
        unpacks = plan.block(gpu)
        for peer in others:
            unpacks.op("upkt", [("s", peer)], [("o", peer)])
    return plan


def packet_ring_all_gather(ranks: int) -> Plan:
    """Each packet that comes is read by two thread blocks: one forwards it, one unpacks.

    The latter begins with what comes last, so that it must not be what receives.
    """
    plan = Plan(
        "allgather pkt ring", "allgather", ranks, 1, ranks, ranks, inplace=True, protocol="LL"
    )
    for gpu in range(ranks):
        after = (gpu + 1) % ranks
        came = [(gpu - hop) % ranks for hop in range(1, ranks)]
        unpacks = plan.block(gpu)
        for chunk in reversed(came):
            unpacks.op("upkt", [("s", chunk)], [("o", chunk)])
        plan.block(gpu).op("ppkt", [("o", gpu)], [(after, "s", gpu)])
        forwards = plan.block(gpu)
        for chunk in came[:-1]:
            forwards.op("rppkt", [("s", chunk)], [(after, "s", chunk)])
    return plan


def parted_packets_all_gather(ranks: int) -> Plan:
    """Packets of two chunks are put as one run, and read one by one, the last first."""
    plan = Plan(
        "allgather parts", "allgather", ranks, 2, 2 * ranks, 2 * ranks, inplace=True, protocol="LL"
    )
    for gpu in range(ranks):
        puts, unpacks = plan.block(gpu), plan.block(gpu)
        for peer in plan.others(gpu):
            puts.op("ppkt", [("o", 2 * gpu)], [(peer, "s", 2 * gpu)], size=2)
            for chunk in (2 * peer + 1, 2 * peer):
                unpacks.op("upkt", [("s", chunk)], [("o", chunk)])
    return plan


def inplace_all_to_all(ranks: int) -> Plan:
    """In one memory, over scratch; what is sent is overwritten once it has been."""
    plan = Plan("alltoall in place", "alltoall", ranks, ranks, ranks, ranks, inplace=True)
    for gpu in range(ranks):
        others = plan.others(gpu)
        block = plan.block(gpu)
        for peer in others:
            block.op("put", [("i", peer)], [(peer, "s", gpu)])
        block.signal(*others).wait(*others)
        for peer in others:
            block.op("copy", [("s", peer)], [("i", peer)])
    return plan


def grouped_all_reduce(ranks: int, group: int = 3) -> Plan:
    """Thread blocks share each operation; the first of them signals and waits for all."""
    plan = Plan("allreduce group", "allreduce", ranks, 2, 2, 2 * ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        barrier = {"barrier_id": 0, "num_threadblocks": group}
        came: list[Local | Remote] = [("s", 2 * peer) for peer in others]
        for part in range(group):
            share = {"tb_id": part, "tbg_size": group}
            block = plan.block(gpu)
            for peer in others:
                block.op("put", [("i", 0)], [(peer, "s", 2 * gpu)], size=2, tbg_info=share)
            block.op("barrier", **barrier)
            if part == 0:
                block.signal(*others).wait(*others)
            block.op("barrier", **barrier)
            block.op("re", [("i", 0), *came], [("o", 0)], size=2, tbg_info=share)
    return plan


def grouped_reading_all_gather(ranks: int, group: int = 2) -> Plan:
    """Thread blocks share what they read of others; the first of them waits for these."""
    plan = Plan("allgather group", "allgather", ranks, 1, ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        barrier = {"barrier_id": 0, "num_threadblocks": group}
        for part in range(group):
            share = {"tb_id": part, "tbg_size": group}
            block = plan.block(gpu)
            block.op("copy", [("i", 0)], [("o", gpu)], tbg_info=share).op("barrier", **barrier)
            if part == 0:
                block.signal(*others).wait(*others)
            block.op("barrier", **barrier)
            for peer in others:
                block.op("get", [(peer, "o", peer)], [("o", peer)], tbg_info=share)
    return plan


def crossed_all_gather(ranks: int) -> Plan:
    """Two thread blocks share a copy of two chunks, and what is read of others by single chunks.

    Each signals and waits by itself, though it reads what the other wrote.
    """
    plan = Plan("allgather crossed", "allgather", ranks, 2, 2 * ranks)
    for gpu in range(ranks):
        others = plan.others(gpu)
        for part in range(2):
            share = {"tb_id": part, "tbg_size": 2}
            block = plan.block(gpu)
            block.op("copy", [("i", 0)], [("o", 2 * gpu)], size=2, tbg_info=share)
            block.signal(*others, connection=part).wait(*others, connection=part)
            for peer in others:
                for chunk in (2 * peer, 2 * peer + 1):
                    block.op("get", [(peer, "o", chunk)], [("o", chunk)], tbg_info=share)
    return plan


def pipelined_all_to_all(ranks: int) -> Plan:
    """A thread block puts, another fetches what came out of scratch, in loops of one chunk."""
    plan = Plan(
        "alltoall pipeline", "alltoall", ranks, ranks, ranks, ranks, inplace=True, semaphores=[0]
    )
    for gpu in range(ranks):
        others = plan.others(gpu)
        puts, copies = plan.block(gpu), plan.block(gpu)
        for peer in others:
            puts.op("put", [("i", peer)], [(peer, "s", gpu)])
        puts.signal(*others).op("sem_release", semaphore_ids=[0])
        copies.op("sem_acquire", semaphore_ids=[0]).wait(*others)
        for peer in others:
            copies.op("copy", [("s", peer)], [("i", peer)])
        puts.loop_chunks = copies.loop_chunks = 1
    return plan


def acknowledged_all_gather() -> Plan:
    """Scratch is used again by another thread block once the peer has said that it has come."""
    plan = Plan("allgather ack", "allgather", 2, 1, 2, 1)
    for gpu in range(2):
        peer = 1 - gpu
        plan.block(gpu).op("copy", [("i", 0)], [("o", gpu)])
        plan.block(gpu).op("copy", [("i", 0)], [("s", 0)]).op(
            "put", [("s", 0)], [(peer, "o", gpu)]
        ).signal(peer)
        plan.block(gpu).wait(peer).signal(peer, connection=1)
        plan.block(gpu).wait(peer, connection=1).op("copy", [("i", 0)], [("s", 0)])
    return plan


def late_all_gather() -> Plan:
    """One thread block reads packets in another order than they are sent in."""
    plan = Plan("allgather late", "allgather", 2, 4, 8, 8, inplace=True, protocol="LL")
    for gpu in range(2):
        peer = 1 - gpu
        puts, unpacks = plan.block(gpu), plan.block(gpu)
        for chunk in range(4):
            puts.op("ppkt", [("o", 4 * gpu + chunk)], [(peer, "s", 4 * gpu + chunk)])
        for chunk in (2, 3, 0, 1):
            unpacks.op("upkt", [("s", 4 * peer + chunk)], [("o", 4 * peer + chunk)])
    return plan


def plans() -> list[Plan]:
    return [
        put_all_gather(2),
        put_all_gather(4),
        port_all_gather(4),
        port_all_gather(3, inplace=False),
        ring_all_gather(4),
        one_shot_all_reduce(4),
        two_shot_all_reduce(4),
        reading_all_reduce(4),
        inplace_all_reduce(4),
        scratch_reduce_scatter(4),
        put_all_to_all(4),
        barrier_all_reduce(4),
        semaphore_all_gather(4),
        sending_ring_all_reduce(4),
        forwarded_all_gather(4),
        packet_ring_all_gather(4),
        parted_packets_all_gather(3),
        inplace_all_to_all(4),
        grouped_all_reduce(3),
        grouped_reading_all_gather(3),
        crossed_all_gather(3),
        pipelined_all_to_all(3),
        acknowledged_all_gather(),
        late_all_gather(),
    ]

# SPDX-License-Identifier: Apache-2.0
"""An RDMA peer that contains nothing of PCCL: the PyPI package ibverbs, on a machine with rxe.

    foreign_peer.py listen [PORT]         offers memory to one peer after the other, until killed
    foreign_peer.py listen-once [PORT]    ... to one
    foreign_peer.py connect HOST [PORT]   writes, reads and notifies the memory of such a peer
    foreign_peer.py alone                 both, on one machine

Over a TCP socket each side sends a line of JSON, its `Endpoint`, connects its queue pair, and then
sends the line "ready". After that the memory is accessed by RDMA alone; the listener answers each
immediate that arrives with a line on the socket, its number and the SHA-256 of its memory. The end
of the socket, or an error of the queue pair, ends the session. Tests use `Peer` in their own
program, against a library's memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import mmap
import random
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import ibverbs as ib

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 18601
SECONDS = 20
OUTSTANDING_READS = 16
ACCESS = ib.AccessFlags.LOCAL_WRITE | ib.AccessFlags.REMOTE_WRITE | ib.AccessFlags.REMOTE_READ


@dataclasses.dataclass
class Endpoint:
    """What a peer needs in order to reach a queue pair and the memory behind it."""

    qp_number: int
    psn: int
    gid: str  # 32 hexadecimal digits
    lid: int
    mtu: int  # as enum ibv_mtu: 1 for 256 bytes to 5 for 4096
    address: int
    rkey: int
    size: int

    def line(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Endpoint:
        return cls(**json.loads(line))


class Peer:
    """A reliable queue pair with registered memory of its own. Calls wait for their completion."""

    def __init__(self, device: str = "rxe0", gid_index: int = 1, size: int = 1 << 20) -> None:
        self.gid_index = gid_index
        self.memory = mmap.mmap(-1, size)
        found = [entry for entry in ib.get_device_list() if entry.name == device]
        if not found:
            raise SystemExit(f"foreign_peer: there is no RDMA device {device}")
        self._context = found[0].open()
        self._domain = self._context.alloc_pd()
        self._sent = self._context.create_cq(128)
        self._received = self._context.create_cq(128)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._region = self._domain.reg_mr(address, size, ACCESS)
        self._queue_pair = self._domain.create_qp(
            ib.QPInitAttr(send_cq=self._sent, recv_cq=self._received, qp_type=ib.QPType.RC)
        )
        port = self._context.query_port(1)
        self.endpoint = Endpoint(
            qp_number=self._queue_pair.qp_num,
            psn=random.getrandbits(24),
            gid=bytes(self._context.query_gid(1, gid_index).raw).hex(),
            lid=port.lid,
            mtu=int(port.active_mtu),
            address=address,
            rkey=self._region.rkey,
            size=size,
        )

    def connect(self, remote: Endpoint) -> None:
        """Connect the queue pair, and post receives for immediates."""
        info = ib.QPInfo(
            qp_num=remote.qp_number,
            psn=remote.psn,
            lid=remote.lid,
            gid=bytes.fromhex(remote.gid),
            port=1,
            mtu=remote.mtu,
        )
        pair = self._queue_pair
        pair.to_init(1, ACCESS)
        for _ in range(64):
            pair.post_recv([ib.RecvWR()])
        pair.to_rtr(
            info,
            sgid_index=self.gid_index,
            mtu=min(self.endpoint.mtu, remote.mtu),
            hop_limit=64,
            max_dest_rd_atomic=OUTSTANDING_READS,
        )
        # rxe never ends the retries of a queue pair whose retry count is 7.
        pair.to_rts(self.endpoint.psn, retry_cnt=6, max_rd_atomic=OUTSTANDING_READS)

    def _post(self, opcode: ib.WROpcode, size: int, **fields: int) -> None:
        entries = [ib.SGE(self._region, size)] if size else []
        self._queue_pair.post_send(
            [ib.SendWR(sg_list=entries, opcode=opcode, send_flags=ib.SendFlags.SIGNALED, **fields)]
        )
        self._wait(self._sent, SECONDS).raise_for_status()

    @staticmethod
    def _wait(queue: ib.CQ, seconds: float) -> ib.WC:
        deadline = time.monotonic() + seconds
        while not (done := queue.poll(1)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no completion within {seconds} s")
            time.sleep(0.001)
        return done[0]

    def write(self, address: int, rkey: int, data: bytes) -> None:
        """Write remote memory. Raises ibverbs.CompletionError where the peer refuses."""
        self.memory[: len(data)] = data
        self._post(ib.WROpcode.RDMA_WRITE, len(data), remote_addr=address, rkey=rkey)

    def write_with_immediate(self, address: int, rkey: int, data: bytes, number: int) -> None:
        """Write remote memory, and complete a receive of the peer with this number."""
        self.memory[: len(data)] = data
        opcode = ib.WROpcode.RDMA_WRITE_WITH_IMM
        self._post(opcode, len(data), remote_addr=address, rkey=rkey, imm_data=number)

    def read(self, address: int, rkey: int, size: int) -> bytes:
        """Read remote memory."""
        self._post(ib.WROpcode.RDMA_READ, size, remote_addr=address, rkey=rkey)
        return self.memory[:size]

    def poll_immediate(self) -> int | None:
        """Return the number of an immediate that arrived, if any, and post its receive anew."""
        for done in self._received.poll(1):
            done.raise_for_status()
            self._queue_pair.post_recv([ib.RecvWR()])
            return done.imm_data
        return None

    def close(self) -> None:
        for owned in (self._queue_pair, self._region, self._sent, self._received, self._domain):
            owned.close()
        self._context.close()


def exchange(peer: Peer, connection: socket.socket) -> Endpoint:
    """Connect the two queue pairs over this socket, and return the other's endpoint."""
    connection.settimeout(SECONDS)
    with connection.makefile("rb") as lines:
        connection.sendall(peer.endpoint.line())
        remote = Endpoint.from_line(lines.readline())
        peer.connect(remote)
        connection.sendall(b"ready\n")
        if lines.readline() != b"ready\n":
            raise ConnectionError("the peer went before its queue pair was connected")
    return remote


@contextlib.contextmanager
def opened() -> Iterator[Peer]:
    peer = Peer()
    try:
        yield peer
    finally:
        peer.close()


def serve(connection: socket.socket) -> None:
    """Offer memory, and answer each immediate, until the peer closes the socket."""
    with opened() as peer:
        exchange(peer, connection)
        connection.setblocking(False)
        while True:
            try:
                number = peer.poll_immediate()
            except ib.CompletionError as error:
                print(f"foreign_peer: the session ends: {error}", flush=True)
                return
            if number is not None:
                digest = hashlib.sha256(peer.memory[:]).hexdigest()
                connection.sendall(f"{number} {digest}\n".encode())
                continue
            with contextlib.suppress(BlockingIOError):
                if not connection.recv(1):
                    return
            time.sleep(0.001)


def listen(port: int, once: bool) -> None:
    with socket.create_server(("", port)) as server:
        print(f"foreign_peer: listens on port {port}", flush=True)
        while True:
            connection, address = server.accept()
            with connection:
                serve(connection)
            print(f"foreign_peer: served {address[0]}", flush=True)
            if once:
                return


def dial(host: str, port: int) -> socket.socket:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection((host, port), timeout=SECONDS)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def drive(host: str, port: int) -> None:
    """Write, read and notify, compare what is there with a copy, and get a wrong key refused."""
    chosen = random.Random(1)
    with dial(host, port) as connection, opened() as peer:
        remote = exchange(peer, connection)
        copy = bytearray(remote.size)
        for size in (1, 8, 4095, 4096, 4097, 65536, 300_000):
            offset = chosen.randrange(remote.size - size)
            data = chosen.randbytes(size)
            peer.write(remote.address + offset, remote.rkey, data)
            copy[offset : offset + size] = data
            assert peer.read(remote.address + offset, remote.rkey, size) == data
        with connection.makefile("rb") as lines:
            for number, size in ((1, 0), (0x01020304, 8), (0xFFFFFFFF, 5000)):
                data = chosen.randbytes(size)
                peer.write_with_immediate(remote.address, remote.rkey, data, number)
                copy[:size] = data
                answer = lines.readline().decode().split()
                assert answer == [str(number), hashlib.sha256(copy).hexdigest()], answer
        try:
            peer.write(remote.address, remote.rkey ^ 0xFFFF00, b"x")
        except ib.CompletionError as error:
            print(f"foreign_peer: wrote, read and notified; a wrong key was refused: {error}")
        else:
            raise AssertionError("a write with a wrong key succeeded")


def alone() -> None:
    listener = subprocess.Popen([sys.executable, __file__, "listen-once", str(PORT)])
    try:
        drive("127.0.0.1", PORT)
        assert listener.wait(SECONDS) == 0
    finally:
        listener.kill()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["alone"]:
            alone()
        case ["listen" | "listen-once", *rest] if len(rest) < 2:
            listen(int(rest[0]) if rest else PORT, arguments[0] == "listen-once")
        case ["connect", host, *rest] if len(rest) < 2:
            drive(host, int(rest[0]) if rest else PORT)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

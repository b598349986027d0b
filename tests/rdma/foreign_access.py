# SPDX-License-Identifier: Apache-2.0
"""Read and write memory of PCCL by its published descriptor, with the PyPI package ibverbs.

The owner (support/memory_owner.py) is a session as in any program. The foreign peer has a queue
pair, memory and requests of its own. It takes from PCCL the descriptor's bytes, and a session that
asks the owner to connect a queue pair to it; introducer.c lets that session name the foreign one.

A descriptor, `Memory.descriptor().serialize()`, has these bytes, all numbers little-endian
(csrc/abi/memory.h, csrc/transport/memory_descriptor.cc, csrc/transport/verbs/memory_key.cc):

    2  0x3E4D        8  id, nonce, bytes of the memory (8 each)     2  bytes of the keys
    2  version, 2    1  kind: 0 for memory of the host              .  keys      4  checksum

    key: 1 transport (3 for verbs), 1 length, then for verbs 8 address, 8 check value, and 4 rkey
    for each device of the owner

PCCL has no public function that returns the address and the rkey: these are the transport's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import ibverbs as ib  # noqa: E402 (after the path)
from foreign_peer import Endpoint, Peer  # noqa: E402

from support.ports import free_port  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.memory_owner import Owner

VERBS = 3
MAGIC, VERSION = 0x3E4D, 2
BYTES = 1 << 20
SECONDS = 60.0


class Connection(ctypes.Structure):
    """As in introducer.c."""

    _fields_ = (
        ("peer_number", ctypes.c_uint32),
        ("peer_sequence", ctypes.c_uint32),
        ("own_sequence", ctypes.c_uint32),
        ("mtu", ctypes.c_uint32),
        ("peer_gid", ctypes.c_uint8 * 16),
    )


def address_and_rkey(descriptor: bytes) -> tuple[int, int]:
    """Return where memory is, and its key for the owner's first device."""
    head = struct.Struct("<HHQQQBH")
    magic, version, _, _, nbytes, kind, key_bytes = head.unpack_from(descriptor)
    assert (magic, version, nbytes, kind) == (MAGIC, VERSION, BYTES, 0)
    rest = descriptor[head.size : head.size + key_bytes]
    while rest:
        transport, length = rest[0], rest[1]
        if transport == VERBS:
            address, _, rkey = struct.unpack_from("<QQI", rest, 2)
            return address, rkey
        rest = rest[2 + length :]
    raise AssertionError("the descriptor has no key for verbs")


def build_introducer(folder: str) -> str:
    """Compile it, and let this process's PCCL use it as libibverbs."""
    library = f"{folder}/introducer.so"
    source = str(HERE / "introducer.c")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library]
    subprocess.run(["cc", *flags, source, "-Wl,--no-as-needed", "-libverbs"], check=True)
    return library


@contextlib.contextmanager
def foreign_pair(introducer: ctypes.CDLL) -> Iterator[tuple[Peer, Owner]]:
    """Give a foreign peer whose queue pair a new owner of memory has connected to."""
    import numpy as np

    from pccl import p2p
    from support import memory_owner

    port = free_port()
    command = [sys.executable, memory_owner.__file__, str(port)]
    usual = {name: value for name, value in os.environ.items() if name != "PCCL_IBVERBS_LIBRARY"}
    with subprocess.Popen(command, env=usual) as process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        owner = stack.enter_context(contextlib.closing(memory_owner.Owner("127.0.0.1", port)))
        peer = Peer(size=BYTES)
        stack.callback(peer.close)
        session = stack.enter_context(p2p.Session("introducer", transports="verbs"))
        session.load(owner.ask("info"))
        session.connect(memory_owner.NAME, SECONDS)
        remote = session.import_memory(memory_owner.NAME, owner.ask("register", 0, 64))
        here = session.register(np.zeros(64, np.uint8))
        introducer.introduce(peer.endpoint.qp_number)
        work = session.read(here[:], remote[:])  # connects, and is never done
        stack.callback(work.cancel)
        connection = Connection()
        deadline = time.monotonic() + SECONDS
        while not introducer.connection_of_introduced(ctypes.byref(connection)):
            assert time.monotonic() < deadline, "the owner has not connected to the queue pair"
            time.sleep(0.01)
        peer.endpoint.psn = connection.own_sequence
        there = Endpoint(
            qp_number=connection.peer_number,
            psn=connection.peer_sequence,
            gid=bytes(connection.peer_gid).hex(),
            lid=0,
            mtu=connection.mtu,
            address=0,
            rkey=0,
            size=0,
        )
        peer.connect(there)
        yield peer, owner


def reads_and_writes(peer: Peer, owner: Owner) -> None:
    from support.memory_owner import random_bytes

    address, rkey = address_and_rkey(owner.ask("register", 1, BYTES))
    copy = bytearray(random_bytes(1, BYTES).tobytes())
    for begin, end in ((0, 1), (5, 4101), (70_000, 400_000), (0, BYTES)):
        assert peer.read(address + begin, rkey, end - begin) == copy[begin:end]
    for number, (begin, end) in enumerate(((0, 1), (77, 5000), (1000, BYTES))):
        data = random_bytes(10 + number, end - begin).tobytes()
        peer.write(address + begin, rkey, data)
        copy[begin:end] = data
        assert owner.ask("content", 1) == copy


def refused(what: str, peer: Peer, owner: Owner) -> str:
    """Access what may not be accessed, and return the error; a queue pair has only one."""
    address, rkey = address_and_rkey(owner.ask("register", 1, BYTES))
    assert len(peer.read(address, rkey, 64)) == 64
    if what.endswith("after deregister()"):
        owner.ask("deregister", 1)
    else:
        address += BYTES - 32
    before = owner.ask("content", 1)
    try:
        if what.startswith("write"):
            peer.write(address, rkey, b"x" * 64)
        else:
            peer.read(address, rkey, 64)
    except ib.CompletionError as error:
        assert owner.ask("content", 1) == before
        return str(error)
    raise AssertionError(f"a {what} succeeded")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        library = build_introducer(folder)
        os.environ.update(PCCL_IBVERBS_LIBRARY=library, PCCL_TRANSPORTS="verbs", PCCL_IB_HCA="rxe0")
        introducer = ctypes.CDLL(library)
        with foreign_pair(introducer) as (peer, owner):
            reads_and_writes(peer, owner)
        print("foreign_access: read and wrote memory of PCCL by its descriptor", flush=True)
        for what in (
            "read after deregister()",
            "write after deregister()",
            "read beyond the end",
            "write beyond the end",
        ):
            with foreign_pair(introducer) as (peer, owner):
                error = refused(what, peer, owner)
            print(f"foreign_access: a {what} was refused: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Sessions over RDMA devices of a virtual machine, and between two of them.

The memory belongs to another process, on this machine or on the other one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from pccl import p2p
from support import memory_owner, rdma
from support.memory_owner import NAME, Owner, random_bytes
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

rdma.need_devices()
# Before the first session of this process and of those that it starts.
os.environ.update(rdma.over_verbs())

MIB = 1 << 20
PATIENCE_S = 60.0
BY_RDMA = "verbs, by RDMA"


class Side:
    """A session of the test's own process, with memory, and the owner of the remote memory."""

    def __init__(self, session: p2p.Session, owner: Owner, device: str) -> None:
        self.session, self.owner, self.device = session, owner, device
        self.mine = random_bytes(1, MIB)
        self.here = session.register(self.mine)
        session.load(owner.ask("info"))

    def remote(self, seed: int, nbytes: int = MIB) -> p2p.RemoteMemory:
        return self.session.import_memory(NAME, self.owner.ask("register", seed, nbytes))

    def read(self, remote: p2p.RemoteMemory) -> None:
        self.session.read(self.here[:], remote[:]).wait(PATIENCE_S)


def content(of: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(of, np.uint8)


def reads_and_writes_and_their_notifications(side: Side) -> None:
    session, mine, here = side.session, side.mine, side.here
    remote = side.remote(2)
    theirs = random_bytes(2, MIB)
    before = rdma.sent_packets(side.device)
    for begin, end in ((0, 1), (5, 1000), (4095, 70_000), (0, MIB)):
        work = session.read(here[begin:end], remote[begin:end])
        work.wait(PATIENCE_S)
        assert (mine[begin:end] == theirs[begin:end]).all()
        assert work.stats().path == BY_RDMA, work.stats()
    for number, (begin, end) in enumerate(((0, 1), (77, 5000), (0, MIB))):
        mine[:] = random_bytes(10 + number, MIB)
        payload = b"written %d" % number
        session.write(here[begin:end], remote[begin:end], notify=payload).wait(PATIENCE_S)
        theirs[begin:end] = mine[begin:end]
        peer, received, contents = side.owner.ask("notification")
        assert (peer, received) == ("asker", payload)
        assert (content(contents[2]) == theirs).all(), "the notification came before its bytes"
    assert rdma.sent_packets(side.device) - before >= MIB // rdma.path_mtu(side.device)


def runs_and_lists_of_blocks(side: Side) -> None:
    session, mine, here = side.session, side.mine, side.here
    remote, theirs = side.remote(2), random_bytes(2, MIB)
    runs = np.array([(at, 4096) for at in range(0, MIB, 4096)])
    backwards = session.prepare(here, runs, remote, runs[::-1].copy())
    session.post_read(backwards).wait(PATIENCE_S)
    assert (mine.reshape(-1, 4096)[::-1] == theirs.reshape(-1, 4096)).all()
    # Blocks of many lengths, some of which touch: every third one is not moved.
    chosen = np.random.default_rng(3)
    edges = np.unique(chosen.integers(0, MIB, 600))
    blocks = np.stack([edges[:-1], np.diff(edges)], axis=1)[np.arange(len(edges) - 1) % 3 > 0]
    mine[:] = random_bytes(4, MIB)
    plan = session.prepare(here, blocks, remote, blocks)
    session.post_write(plan).wait(PATIENCE_S)
    for offset, length in blocks:
        theirs[offset : offset + length] = mine[offset : offset + length]
    assert (content(side.owner.ask("content", 2)) == theirs).all()


def messages_with_tags(side: Side) -> None:
    side.owner.ask("load", side.session.connection_info())
    side.owner.ask("register", 2, MIB)
    theirs = random_bytes(2, MIB)
    incoming = side.session.transfer(NAME)
    wanted = [(3, 10_000, 50_000, 8000), (1, 200_000, 700_001, 17)]
    received = [incoming.post_recv(side.here, at, size, tag=tag) for tag, at, size, _ in wanted]
    for tag, _, size, source in reversed(wanted):
        side.owner.ask("send", "asker", 2, source, size, tag)
    incoming.wait(timeout=PATIENCE_S)
    for message, (_, at, size, source) in zip(received, wanted, strict=True):
        assert message.nbytes == size
        assert (side.mine[at : at + size] == theirs[source : source + size]).all()


def descriptors_of_ended_registrations(side: Side) -> None:
    remote, lasting = side.remote(2), side.remote(5)
    side.read(remote)
    side.owner.ask("deregister", 2)
    before = side.owner.ask("content", 2)
    again = side.session.import_memory(NAME, side.owner.ask("register_again", 2))
    for copy in (side.session.read, side.session.write):
        for _ in range(2):
            with pytest.raises(pccl.UnavailableError, match="ended the registration"):
                copy(side.here[:], remote[:]).wait(PATIENCE_S)
    assert side.owner.ask("content", 2) == before
    # Others are as good as before, one of the same addresses, too.
    for memory, seed in ((lasting, 5), (again, 2)):
        side.read(memory)
        assert (side.mine == random_bytes(seed, MIB)).all()


def until_refused(copy: Callable[[], None]) -> None:
    """Repeat a copy until the end of the registration ends it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            copy()
        except pccl.UnavailableError as error:
            assert "ended the registration" in str(error), error  # noqa: PT017 (in a loop)
            return
    raise AssertionError("copies of deregistered memory went on")


def deregistration_while_peers_read(side: Side) -> None:
    remote = side.remote(2)
    side.read(remote)
    theirs = random_bytes(2, MIB)

    def read() -> None:
        side.mine[:] = 1
        side.read(remote)
        assert (side.mine == theirs).all(), "a read returned bytes of a later time"

    side.owner.begin("deregister_after", 2, 0.5, 0)
    until_refused(read)
    side.owner.finish()


def deregistration_while_peers_write(side: Side) -> None:
    remote = side.remote(2)

    def write() -> None:
        side.session.write(side.here[:], remote[:]).wait(PATIENCE_S)

    write()
    side.owner.begin("deregister_after", 2, 0.5, 0)
    until_refused(write)
    assert (content(side.owner.finish()) == side.mine).all()
    # What the owner wrote after it had deregistered is there still.
    assert not content(side.owner.ask("content", 2)).any()


def own_memory_that_a_transfer_uses(side: Side) -> None:
    remote = side.remote(2)
    side.read(remote)  # connects
    whole = np.array([(at, 64) for at in range(0, MIB, 64)])
    work = side.session.post_read(
        side.session.prepare(side.here, whole, remote, whole[::-1].copy())
    )
    with pytest.raises(pccl.UnavailableError, match="use"):
        side.here.deregister()
    work.wait(PATIENCE_S)
    assert (side.mine.reshape(-1, 64)[::-1] == random_bytes(2, MIB).reshape(-1, 64)).all()
    side.here.deregister()


CASES = [
    reads_and_writes_and_their_notifications,
    runs_and_lists_of_blocks,
    messages_with_tags,
    descriptors_of_ended_registrations,
    deregistration_while_peers_read,
    deregistration_while_peers_write,
    own_memory_that_a_transfer_uses,
]
cases = pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])


@contextlib.contextmanager
def side_of(host: str, port: int, device: str) -> Iterator[Side]:
    with (
        contextlib.closing(Owner(host, port)) as owner,
        p2p.Session("asker", transports="verbs", connect_timeout=PATIENCE_S) as session,
    ):
        yield Side(session, owner, device)


@cases
def test_within_one_machine(case: Callable[[Side], None]) -> None:
    port = free_port()
    command = [sys.executable, memory_owner.__file__, str(port)]
    with subprocess.Popen(command) as owner:
        try:
            with side_of("127.0.0.1", port, "rxe0") as side:
                case(side)
            assert owner.wait(PATIENCE_S) == 0
        finally:
            owner.kill()


@pytest.mark.two_machines
@cases
def test_between_two_machines(case: Callable[[Side], None]) -> None:
    machines = rdma.two_machines()
    if machines.rank == 1:
        memory_owner.serve(machines.port)
        return
    with side_of(os.environ["PEER"], machines.port, "rxe0") as side:
        case(side)

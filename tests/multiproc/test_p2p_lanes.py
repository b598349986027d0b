# SPDX-License-Identifier: Apache-2.0
"""Large transfers of sessions over TCP on lanes, which helper threads progress on both sides."""

import contextlib
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist

import pccl
from pccl import p2p
from support.background import threads_of_pccl
from support.launch import RankError, new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such thing")]

HELPED = {"PCCL_TCP_THREADS": "3"}
NBYTES = (32 << 20) + 3
PATIENCE = 60.0
ROUNDS = 12


def helpers() -> int:
    return sum(name == "pccl-helper" for name in threads_of_pccl())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def values(seed: int) -> "np.ndarray":
    return np.random.default_rng(seed).integers(0, 256, NBYTES, dtype=np.uint8)


class Owner:
    """Rank 1, whose program makes no call while rank 0 reads and writes its memory."""

    def __init__(self, store: dist.Store) -> None:
        self._store = store
        self.session = p2p.Session("owner", transports="tcp")
        self.array = values(1)
        self.memory = self.session.register(self.array)
        store.set("info", self.session.connection_info())
        store.set("descriptor", self.memory.descriptor().serialize())
        store.set("pid", str(os.getpid()))

    def close(self) -> None:
        self._store.wait(["over"])
        self.session.close()


class Guest:
    """Rank 0."""

    def __init__(self, store: dist.Store) -> None:
        self._store = store
        self.session = p2p.Session("guest", transports="tcp")
        self.session.load(store.get("info"))
        self.remote = self.session.import_memory("owner", store.get("descriptor"))
        self.array = np.zeros(NBYTES, np.uint8)
        self.memory = self.session.register(self.array)
        self.owner_pid = int(store.get("pid"))

    def read(self) -> p2p.WorkStats:
        work = self.session.read(self.memory, self.remote)
        work.wait(PATIENCE)
        return work.stats()

    def close(self) -> None:
        self._store.set("over", "")
        self.session.close()


def transfers_are_right(rank: int, world_size: int) -> tuple[int, int, tuple[int, str]]:
    store = new_store()
    if rank == 1:
        owner = Owner(store)
        for call in range(ROUNDS):
            [notification] = owner.session.notifications(PATIENCE)
            assert bytes(notification.payload) == f"call {call}".encode()
            assert (owner.array == values(2 + call)).all()
            store.set(f"seen {call}", "")
        owner.close()
        return helpers(), 0, (0, "")
    guest = Guest(store)
    guest.session.connect("owner", timeout=PATIENCE)
    before = descriptors()
    for _ in range(ROUNDS):
        guest.array[:] = 0
        stats = guest.read()
        assert (guest.array == values(1)).all()
    while stats.lane_reason == "they are being opened":  # at most for the connect timeout
        stats = guest.read()
    for call in range(ROUNDS):
        guest.array[:] = values(2 + call)
        guest.session.write(guest.memory, guest.remote, notify=f"call {call}".encode()).wait(
            PATIENCE
        )
        store.wait([f"seen {call}"])
    more = descriptors() - before
    guest.close()
    return helpers(), more, (stats.lanes, stats.lane_reason)


def test_transfers_are_right() -> None:
    (of_guest, sockets, lanes), (of_owner, *_) = run_ranks(
        transfers_are_right, 2, environment=HELPED, backend=None, timeout_s=120
    )
    assert 1 <= of_guest <= 3
    assert 1 <= of_owner <= 3
    assert sockets >= 4 * 8
    assert lanes == (4, "")


@pytest.mark.parametrize("threads", ["0", "3 of one"])
def test_one_side_without_helpers_has_no_lanes(threads: str) -> None:
    results = run_ranks(
        transfers_with_own_setting, 2, arguments=[threads], backend=None, timeout_s=120
    )
    assert [helpers for helpers, *_ in results] == [0, 0]
    assert results[0][1] <= 0
    process = "this process" if threads == "0" else "the peer's process"
    assert results[0][2] == (0, f"PCCL_TCP_THREADS is 0 in {process}")


def transfers_with_own_setting(
    rank: int, world_size: int, threads: str
) -> tuple[int, int, tuple[int, str]]:
    os.environ["PCCL_TCP_THREADS"] = "3" if threads == "3 of one" and rank == 0 else "0"
    return transfers_are_right(rank, world_size)


def reads_until_the_owner_is_killed(rank: int, world_size: int) -> None:
    store = new_store()
    if rank == 1:
        owner = Owner(store)
        store.wait(["begun"])
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
        owner.close()
    guest = Guest(store)
    for _ in range(5):
        guest.read()
    store.set("begun", "")
    begin = time.monotonic()

    def read_on() -> None:
        while time.monotonic() < begin + 30:
            guest.read()

    with pytest.raises(pccl.PeerLostError, match='session "owner"') as caught:
        read_on()
    assert caught.value.pid == guest.owner_pid
    store.set("named", "")


def test_an_owner_that_is_killed_is_named() -> None:
    with pytest.raises(RankError) as caught:
        run_ranks(reads_until_the_owner_is_killed, 2, environment=HELPED, backend=None)
    assert "SIGKILL" in str(caught.value) or "-9" in str(caught.value)
    assert "Traceback" not in str(caught.value), "the reader found what it expects"


def an_owner_is_stopped(rank: int, world_size: int) -> None:
    store = new_store()
    if rank == 1:
        Owner(store).close()
        return
    guest = Guest(store)
    for _ in range(5):
        guest.read()
    for _ in range(5):
        guest.array[:] = 0
        work = guest.session.read(guest.memory, guest.remote)
        os.kill(guest.owner_pid, signal.SIGSTOP)
        with contextlib.suppress(pccl.TimeoutError):
            work.wait(0.2)
        os.kill(guest.owner_pid, signal.SIGCONT)
        work.wait(PATIENCE)
        assert (guest.array == values(1)).all()
    guest.close()


def test_an_owner_that_is_stopped_is_waited_for() -> None:
    run_ranks(an_owner_is_stopped, 2, environment=HELPED, backend=None)


def a_writer_is_stopped(rank: int, world_size: int) -> None:
    store = new_store()
    if rank == 1:
        owner = Owner(store)
        writer = int(store.get("writer"))
        time.sleep(0.3)
        os.kill(writer, signal.SIGSTOP)
        owner.memory.deregister()
        owner.array[:] = 7
        os.kill(writer, signal.SIGCONT)
        store.wait(["ended"])
        assert (owner.array == 7).all()
        owner.close()
        return
    guest = Guest(store)
    guest.array[:] = 9
    guest.read()

    def write_on() -> None:
        while True:
            works = [guest.session.write(guest.memory, guest.remote) for _ in range(3)]
            for work in works:
                work.wait(PATIENCE)

    store.set("writer", str(os.getpid()))
    with pytest.raises(pccl.UnavailableError):
        write_on()
    store.set("ended", "")
    guest.close()


def test_a_writer_that_was_stopped_writes_nothing_after_the_end() -> None:
    run_ranks(a_writer_is_stopped, 2, environment=HELPED, backend=None)

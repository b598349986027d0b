# SPDX-License-Identifier: Apache-2.0
"""Ports that are taken down, and a machine that is powered off, while messages go over RDMA."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from support import rdma
from support.launch import new_store, run_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

rdma.need_devices()
pytestmark = pytest.mark.multiproc

MESSAGES = 120
WINDOW = 8  # messages of each direction under way
DOWN_AT = 40  # the message before which a port is taken down
TIMEOUT_S = 60.0


@pytest.fixture
def _ports_up() -> Iterator[None]:
    yield
    for netdev in ("dummy0", "eth0"):
        set_link(netdev, "up")
    deadline = time.monotonic() + TIMEOUT_S
    while not all(rdma.is_active(device) for device in rdma.DEVICES):
        assert time.monotonic() < deadline, "a port did not come up again"
        time.sleep(0.05)


def set_link(netdev: str, state: str) -> None:
    subprocess.run(["ip", "link", "set", netdev, state], check=True)


def message(number: int, sender: int) -> NDArray[np.uint64]:
    """Return a message that begins with its number; one in three is of several pieces."""
    random = np.random.default_rng(1000 * sender + number)
    count = int(random.choice([1, 300, 40_000]))
    content = random.integers(0, 1 << 63, count, dtype=np.uint64)
    content[0] = number
    return content


def communicator(rank: int, world_size: int) -> pccl.Communicator:
    return pccl.Communicator(
        rank=rank, world_size=world_size, rendezvous=new_store(), timeout=TIMEOUT_S
    )


def expect(comm: pccl.Communicator, number: int, sender: int) -> None:
    """Receive a message and compare all of it: one that came twice or not at all differs."""
    expected = message(number, sender)
    received = np.zeros_like(expected)
    comm.recv(received, sender)
    assert received[0] == number
    assert (received == expected).all()


def until_lost(comm: pccl.Communicator, values: NDArray[np.float64]) -> pccl.PeerLostError:
    """Repeat an all_reduce until a peer is lost, and return the error."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            comm.all_reduce(values)
        except pccl.PeerLostError as error:
            return error
    raise AssertionError("the group goes on without its peer")


def messages_while_ports_go_down(rank: int, world_size: int) -> None:
    comm = communicator(rank, world_size)
    peer = 1 - rank
    under_way: deque[tuple[pccl.Event, NDArray[np.uint64]]] = deque()
    for number in range(MESSAGES):
        if number == DOWN_AT and rank == 0:
            assert all(rdma.sent_packets(device) for device in rdma.DEVICES)
            set_link("dummy0", "down")
        outgoing = message(number, rank)
        under_way.append((comm.send(outgoing, peer, async_op=True), outgoing))
        if number >= WINDOW:
            expect(comm, number - WINDOW, peer)
            under_way.popleft()[0].wait()
    for number in range(MESSAGES - WINDOW, MESSAGES):
        expect(comm, number, peer)
    for sent, _ in under_way:
        sent.wait()
    comm.barrier()
    if rank == 0:
        assert not rdma.is_active("rxe1")
        set_link("eth0", "down")
    assert until_lost(comm, np.ones(1000)).rank == peer


@pytest.mark.usefixtures("_ports_up")
def test_messages_arrive_once_when_a_port_goes_down_and_the_last_port_ends_the_group() -> None:
    run_ranks(
        messages_while_ports_go_down,
        2,
        backend=None,
        timeout_s=rdma.SECONDS,
        environment=rdma.over_verbs(),
    )


def power_off_in_the_middle(rank: int, world_size: int) -> None:
    comm = communicator(rank, world_size)
    values = np.ones(20_000)
    comm.all_reduce(values)
    assert (values == 2).all()
    if rank == 1:
        threading.Timer(1.0, lambda: Path("/proc/sysrq-trigger").write_text("b")).start()
    error = until_lost(comm, values)
    assert error.rank == 1
    assert "rank 1" in str(error)
    # Every later operation has the same error.
    with pytest.raises(pccl.PeerLostError):
        comm.barrier()


@pytest.mark.two_machines
def test_a_machine_that_is_powered_off_is_named() -> None:
    run_ranks(
        power_off_in_the_middle,
        2,
        backend=None,
        timeout_s=rdma.SECONDS,
        environment=rdma.over_verbs(),
        machines=rdma.two_machines(other_stays=False),
    )

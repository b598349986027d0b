# SPDX-License-Identifier: Apache-2.0
"""Sessions of two hosts between which the network is cut: each loses the other, and says whom."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from faults import network
from pccl import p2p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

pytestmark = [pytest.mark.multiproc]

NBYTES = 1 << 20
PEER_TIMEOUT = 2.0  # seconds, of PCCL_PEER_TIMEOUT_MS
SLACK = 20.0  # on a machine that does much else
PATIENCE = 60.0


def session_in(namespace: str, name: str, address: str) -> p2p.Session:
    network.enter(namespace)
    return p2p.Session(name, listen=address)


def serve(pipe: Connection, namespace: str) -> None:
    """Say whom a receive has lost that nobody sends anything to."""
    with session_in(namespace, "server", "10.112.0.2") as session:
        memory = session.register(np.full(NBYTES, 7, np.uint8))
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        peer = session.accept(timeout=PATIENCE)
        message = session.transfer(peer).post_recv(memory, 0, 10)
        pipe.send(peer)
        pipe.send(loss_in(message))


def read(pipe: Connection, namespace: str, info: bytes, descriptor: bytes) -> None:
    """Say whom a read has lost that is begun once the network is cut."""
    with session_in(namespace, "client", "10.112.0.1") as session:
        session.load(info)
        remote = session.import_memory("server", descriptor)
        mine = np.zeros(NBYTES, np.uint8)
        local = session.register(mine)
        session.read(local, remote).wait(PATIENCE)
        pipe.send((mine == 7).all())
        pipe.recv()  # it is cut
        pipe.send(loss_in(session.read(local, remote)))


def loss_in(handle: p2p.Work | p2p.Message) -> tuple[str | None, str]:
    """Return whom it has lost in time, and how that is told."""
    try:
        handle.wait(PEER_TIMEOUT + SLACK)
    except pccl.PeerLostError as lost:
        return lost.peer, str(lost)
    except pccl.Error as other:
        return None, repr(other)
    return None, "it is done"


@pytest.fixture
def processes() -> Iterator[Callable[..., Connection]]:
    context = multiprocessing.get_context("spawn")
    started: list[SpawnProcess] = []

    def start(target: Callable[..., None], *arguments: object) -> Connection:
        here, there = context.Pipe()
        process = context.Process(target=target, args=(there, *arguments), daemon=True)
        process.start()
        started.append(process)
        return here

    yield start
    for process in started:
        process.kill()
        process.join()


def received(pipe: Connection) -> object:
    assert pipe.poll(PATIENCE), "the other process says nothing"
    return pipe.recv()


@pytest.mark.parametrize("how", ["a cable is pulled", "packets are lost"])
def test_who_is_cut_off_is_lost_by_name_in_time(how, processes, monkeypatch):
    reason = network.why_no_namespaces()
    if reason:
        pytest.skip(reason)
    monkeypatch.setenv("PCCL_PEER_TIMEOUT_MS", str(int(PEER_TIMEOUT * 1000)))
    with network.joined_namespaces() as (near, far):
        server = processes(serve, far)
        info, descriptor = received(server)
        client = processes(read, near, info, descriptor)
        assert received(client), "it did not read what the server has"
        assert received(server) == "client"
        if how == "a cable is pulled":
            network.pull_link(near)
        else:
            network.part(near, far)
        client.send("cut")
        for pipe, lost in ((client, "server"), (server, "client")):
            peer, reported = received(pipe)
            assert peer == lost, reported
            assert f'session "{lost}"' in reported

# SPDX-License-Identifier: Apache-2.0
"""Sessions that find each other in a store of keys: torch's, and etcd with its leases."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pccl
from pccl import p2p
from support.etcd import PATIENCE, await_that, real_server
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

NBYTES = 4096


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the endpoint of a server of its own."""
    with real_server(tmp_path_factory.mktemp("etcd")) as endpoint:
        yield endpoint


@pytest.fixture(params=["torch", "etcd", "file", "tcp"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[p2p.KeyStore]:
    prefix = f"{request.node.name}/"
    if request.param == "file":
        yield p2p.RendezvousStore(f"file://{tmp_path}/store", host=True, prefix=prefix)
    elif request.param == "tcp":
        url = f"tcp://127.0.0.1:{free_port()}"
        yield p2p.RendezvousStore(url, host=True, prefix=prefix)
    elif request.param == "torch":
        yield p2p.TorchStore(pytest.importorskip("torch.distributed").HashStore(), prefix=prefix)
    else:
        with p2p.EtcdStore(request.getfixturevalue("etcd"), prefix=prefix) as made:
            yield made


def stamps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, NBYTES, dtype=np.uint8)


def read(session: p2p.Session, remote: p2p.RemoteMemory) -> np.ndarray:
    mine = np.zeros(NBYTES, np.uint8)
    local = session.register(mine)
    session.read(local[:], remote[:]).wait(PATIENCE)
    local.deregister()
    return mine


def test_what_is_published_is_found_and_read(store):
    with p2p.Session("prefill-0") as a, p2p.Session("decode-3") as b:
        published = p2p.Directory(a, store)
        published.publish(keys=a.register(stamps(1)), values=a.register(stamps(2)))
        directory = p2p.Directory(b, store)
        assert directory.names() == ["prefill-0"]
        found = directory.find("prefill-0")
        assert sorted(found) == ["keys", "values"]
        np.testing.assert_array_equal(read(b, found["keys"]), stamps(1))
        np.testing.assert_array_equal(read(b, found["values"]), stamps(2))
        published.withdraw()
        assert directory.names() == []


def test_a_life_withdraws_its_own_entry_alone(store):
    with p2p.Session("prefill-0") as first, p2p.Session("prefill-0") as second:
        old, new = p2p.Directory(first, store), p2p.Directory(second, store)
        old.publish()
        new.publish()
        old.withdraw()
        assert new.names() == ["prefill-0"]


def test_missing_and_malformed_entries_are_reported(store):
    with p2p.Session("a") as a, p2p.Session("b") as b:
        directory = p2p.Directory(b, store)
        with pytest.raises(pccl.TimeoutError, match='session "a" has no entry'):
            directory.find("a", timeout=0.1)
        for value in (
            b"",
            b"\xff",
            b"[]",
            b'{"version": 1}',
            b'{"version":1,"info":3,"memories":{}}',
            b"[" * 60_000,
            b'{"version":1,"info":"","memories":' + b'{"a":' * 10_000,
        ):
            store.put("a", value)
            with pytest.raises(pccl.InvalidArgumentError, match='session "a" is none'):
                directory.find("a")
        p2p.Directory(a, store).publish()
        entry = store.get("a")
        assert entry is not None
        store.put("a", entry.replace(b'"version": 1', b'"version": 2'))
        with pytest.raises(pccl.InvalidArgumentError, match="version 2"):
            directory.find("a")
        store.put("c", entry)
        with pytest.raises(pccl.InvalidArgumentError, match='"c" is of session "a"'):
            directory.find("c")


class Dictionary(dict[str, bytes]):
    """A store of keys in this process, as users may write one."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


def test_an_entry_that_is_refused_changes_nothing():
    own, wrong = Dictionary(), Dictionary()
    with p2p.Session("a") as a, p2p.Session("bob") as bob, p2p.Session("bob") as later:
        p2p.Directory(bob, own).publish(keys=bob.register(stamps(1)))
        found = p2p.Directory(a, own).find("bob")["keys"]
        np.testing.assert_array_equal(read(a, found), stamps(1))
        peers = a.peers()
        p2p.Directory(later, wrong).publish(keys=later.register(stamps(2)))
        wrong["carol"] = wrong["bob"]
        entry = json.loads(wrong["bob"])
        for memories in ({"x": "AAAA"}, json.loads(own["bob"])["memories"]):
            wrong["bob"] = json.dumps({**entry, "memories": memories}).encode()
            with pytest.raises((pccl.InvalidArgumentError, pccl.UnavailableError)):
                p2p.Directory(a, wrong).find("bob")
        with pytest.raises(pccl.InvalidArgumentError, match='"carol" is of session "bob"'):
            p2p.Directory(a, wrong).find("carol")
        assert a.peers() == peers
        a.notify("bob", b"word")
        assert [each.payload for each in bob.notifications(PATIENCE)] == [b"word"]
        assert later.notifications() == []
        np.testing.assert_array_equal(read(a, found), stamps(1))


def test_an_earlier_life_does_not_replace_its_successors_entry(store):
    with p2p.Session("prefill-0") as first, p2p.Session("prefill-0") as second:
        old, new = p2p.Directory(first, store), p2p.Directory(second, store)
        old.publish()
        old.publish(keys=first.register(stamps(1)))
        new.publish()
        entry = store.get("prefill-0")
        with pytest.raises(
            pccl.UnavailableError, match='another incarnation of session "prefill-0"'
        ):
            old.publish()
        old.withdraw()
        assert store.get("prefill-0") == entry
        new.publish(keys=second.register(stamps(2)))
        new.withdraw()
        assert new.names() == []


def test_keys_are_listed_once_however_often_they_are_put_and_deleted(store):
    names = [".count", "count", "key/a", "a", "1"]
    for _ in range(2):
        for name in names:
            store.put(name, b"1")
            store.put(name, b"2")
        assert store.keys() == sorted(names)
        assert [store.get(name) for name in names] == [b"2"] * len(names)
        for name in names:
            store.delete(name)
            store.delete(name)
        assert store.keys() == []
        assert store.get("a") is None


@pytest.fixture(params=["file", "tcp"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"file://{tmp_path}/store" if request.param == "file" else f"tcp://127.0.0.1:{free_port()}"
    )


def publish_at(url: str, pipe: Connection) -> None:
    store = p2p.RendezvousStore(url)
    with p2p.Session("prefill-0") as session:
        p2p.Directory(session, store).publish(cache=session.register(stamps(1)))
        pipe.send(True)
        pipe.recv()


def test_processes_meet_in_a_store_that_one_of_them_hosts(url):
    context = multiprocessing.get_context("spawn")
    stays, there = context.Pipe()
    process = context.Process(target=publish_at, args=(url, there), daemon=True)
    process.start()
    try:
        store = p2p.RendezvousStore(url, host=True)
        with p2p.Session("decode-3") as session:
            found = p2p.Directory(session, store).find("prefill-0", PATIENCE)
            np.testing.assert_array_equal(read(session, found["cache"]), stamps(1))
            assert stays.recv()
    finally:
        process.kill()
        process.join()


def test_threads_share_a_store(url):
    host = p2p.RendezvousStore(url, host=True)
    stores = [host, p2p.RendezvousStore(url)]
    failures = []

    def put(number: int) -> None:
        try:
            for each in range(20):
                stores[number % 2].put(f"{number}-{each}", str(number).encode())
        except pccl.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    names = sorted(f"{number}-{each}" for number in range(4) for each in range(20))
    for each in stores:
        assert each.keys() == names


def test_values_that_a_rendezvous_store_refuses_are_reported(url, tmp_path):
    with pytest.raises(pccl.TimeoutError):
        p2p.RendezvousStore(url, timeout=0.1)
    store = p2p.RendezvousStore(url, host=True)
    with pytest.raises(pccl.InvalidArgumentError, match="at most 65536"):
        store.put("a", b"x" * 65537)
    with pytest.raises(pccl.InvalidArgumentError, match="use 1 to 256"):
        store.put("x" * 250, b"1")
    assert store.keys() == []
    for wrong in ("127.0.0.1:1", "tcp://127.0.0.1", "file://store"):
        with pytest.raises(pccl.InvalidArgumentError):
            p2p.RendezvousStore(wrong)
    (tmp_path / "taken").write_text("something")
    with pytest.raises(pccl.InvalidArgumentError):
        p2p.RendezvousStore(f"file://{tmp_path}/taken", host=True)


def serve(pipe: Connection, endpoint: str, seed: int) -> None:
    with p2p.Session("prefill-0") as session:
        store = p2p.EtcdStore(endpoint, prefix="lives/", lease=1.0)
        p2p.Directory(session, store).publish(cache=session.register(stamps(seed)))
        pipe.send(True)
        pipe.recv()


@contextlib.contextmanager
def life(endpoint: str, seed: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, endpoint, seed), daemon=True)
    process.start()
    try:
        assert here.poll(PATIENCE)
        yield
    finally:
        process.kill()
        process.join()


def test_the_entry_of_a_process_that_dies_goes_and_its_successor_is_found(etcd):
    with p2p.Session("decode-3") as session:
        directory = p2p.Directory(session, p2p.EtcdStore(etcd, prefix="lives/"))
        for seed in (1, 2):
            with life(etcd, seed):
                time.sleep(2.5)  # longer than its lease, which it renews
                found = directory.find("prefill-0", PATIENCE)
                np.testing.assert_array_equal(read(session, found["cache"]), stamps(seed))
            await_that(lambda: directory.names() == [])


def test_a_store_that_lost_its_lease_puts_its_keys_again(etcd):
    with p2p.EtcdStore(etcd, prefix="lost/", lease=1.0) as store:
        store.put("a", b"1")
        lease = store._lease_id
        store._gateway.revoke(lease)
        await_that(lambda: store.get("a") == b"1")
        assert store._lease_id != lease
    assert p2p.EtcdStore(etcd, prefix="lost/").keys() == []


def test_a_store_of_torch_that_has_gone_is_reported():
    distributed = pytest.importorskip("torch.distributed")
    server = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = distributed.TCPStore("127.0.0.1", server.port, is_master=False)
    store = p2p.TorchStore(client)
    store.put("a", b"1")
    del server
    calls = [
        lambda: store.put("a", b"2"),
        lambda: store.get("a"),
        store.keys,
        lambda: store.delete("a"),
    ]
    for call in calls:
        with pytest.raises(pccl.UnavailableError, match="the store of torch does not answer: "):
            call()


def test_a_missing_etcd_is_reported():
    port = free_port()
    store = p2p.EtcdStore(f"http://127.0.0.1:{port}", timeout=1.0)
    with pytest.raises(pccl.UnavailableError, match=f"etcd at http://127.0.0.1:{port} does not"):
        store.get("a")
    with pytest.raises(pccl.InvalidArgumentError, match="http://host:port"):
        p2p.EtcdStore("127.0.0.1:2379")

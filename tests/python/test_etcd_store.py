# SPDX-License-Identifier: Apache-2.0
"""Keys in etcd belong to one life of a process, and requests to etcd are bounded as a whole."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from pccl import p2p
from support import etcd
from support.etcd import StandIn, await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEASE = 1.0


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with etcd.real_server(tmp_path_factory.mktemp("etcd")) as found:
        yield found


@pytest.fixture
def between(endpoint: str) -> Iterator[StandIn]:
    with StandIn(endpoint) as made:
        yield made


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}/"


def store_at(endpoint: str, prefix: str, timeout: float = 5.0) -> p2p.EtcdStore:
    return p2p.EtcdStore(endpoint, prefix=prefix, lease=LEASE, timeout=timeout)


def cut_off(between: StandIn) -> None:
    """Have nothing come through to etcd, and wait until a lease has ended."""
    between.answers = dict.fromkeys(
        ["lease/keepalive", "lease/grant", "kv/put", "kv/txn", "lease/revoke", "kv/range"]
    )
    time.sleep(3 * LEASE)


def test_a_life_that_was_cut_off_leaves_its_successor_alone(
    between: StandIn, endpoint: str, prefix: str
) -> None:
    first, second = store_at(between.endpoint, prefix), store_at(endpoint, prefix)
    first.put("decode-3", b"first")
    cut_off(between)
    assert second.get("decode-3") is None
    second.put("decode-3", b"second")
    between.answers = {}
    with pytest.raises(pccl.UnavailableError, match=r'another store .* has put "decode-3"'):
        first.put("decode-3", b"first")
    time.sleep(2 * LEASE)
    assert second.get("decode-3") == b"second"
    first.delete("decode-3")
    assert second.get("decode-3") == b"second"
    first.close()
    time.sleep(2 * LEASE)
    assert second.get("decode-3") == b"second"
    second.close()
    assert second.get("decode-3") is None


def test_a_life_that_was_cut_off_comes_back_where_nobody_has_followed_it(
    between: StandIn, endpoint: str, prefix: str
) -> None:
    first, other = store_at(between.endpoint, prefix), store_at(endpoint, prefix)
    first.put("a", b"1")
    first.put("b", b"2")
    cut_off(between)
    assert other.keys() == []
    between.answers = {}
    await_that(lambda: other.keys() == ["a", "b"])
    first.put("a", b"3")
    assert other.get("a") == b"3"
    first.close()
    assert other.keys() == []


def test_a_successor_takes_over_at_once_and_is_not_replaced(endpoint: str, prefix: str) -> None:
    first, second = store_at(endpoint, prefix), store_at(endpoint, prefix)
    first.put("a", b"first")
    second.put("a", b"second")
    with pytest.raises(pccl.UnavailableError, match="delete it here before you put it again"):
        first.put("a", b"first again")
    with pytest.raises(pccl.UnavailableError, match="since this one did"):
        first.put("a", b"first again")
    first.delete("a")
    first.close()
    assert second.get("a") == b"second"
    third = store_at(endpoint, prefix)
    third.delete("a")  # which it has never put: whoever's it is
    assert third.get("a") is None
    second.close()


def test_a_key_goes_only_with_its_value(endpoint: str, prefix: str) -> None:
    first, second = store_at(endpoint, prefix), store_at(endpoint, prefix)
    first.put("a", b"1")
    assert not second.delete_if("a", b"2")
    assert second.get("a") == b"1"
    second.put("a", b"2")
    assert not first.delete_if("a", b"1")
    assert second.get("a") == b"2"
    assert second.delete_if("a", b"2")
    time.sleep(2 * LEASE)
    assert second.keys() == []


ODD: dict[str, Any] = {
    "a text": "odd",
    "a list": [1],
    "no result": {"result": "odd"},
    "no number": {"result": {"TTL": "soon"}},
    "a list of numbers": {"result": {"TTL": []}},
    "nested": b"[" * 200_000,
    "no JSON": b"\xff\xfe",
    "nothing": None,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_answer_does_not_end_the_renewing(
    between: StandIn, endpoint: str, prefix: str, odd: Any
) -> None:
    with store_at(between.endpoint, prefix) as store:
        store.put("a", b"1")
        between.answers = {"lease/keepalive": odd}
        time.sleep(0.7 * LEASE)
        between.answers = {}
        time.sleep(3 * LEASE)
        assert store_at(endpoint, prefix).get("a") == b"1"


@pytest.mark.parametrize("odd", [{}, {"succeeded": True}, {"header": {}, "succeeded": "yes"}, "x"])
def test_an_odd_outcome_of_a_comparison_decides_nothing(
    between: StandIn, endpoint: str, prefix: str, odd: Any
) -> None:
    other = store_at(endpoint, prefix)
    with store_at(between.endpoint, prefix) as store:
        store.put("a", b"1")
        between.answers = {"kv/txn": odd}
        with pytest.raises(pccl.UnavailableError):
            store.put("a", b"2")
        assert other.get("a") == b"1"
        between.answers = {}
        store.put("a", b"2")
        assert other.get("a") == b"2"


@pytest.mark.parametrize("odd", [{"kvs": 3}, {"kvs": [3]}, {"kvs": [{"key": 3, "value": 4}]}])
def test_odd_pairs_are_reported(between: StandIn, prefix: str, odd: Any) -> None:
    store = store_at(between.endpoint, prefix)
    between.answers = {"kv/range": odd}
    for call in (lambda: store.get("a"), store.keys):
        with pytest.raises(pccl.UnavailableError, match=r"etcd at .* answers"):
            call()


@pytest.mark.parametrize("odd", [{}, {"ID": None}, {"ID": {}}])
def test_a_missing_lease_is_reported(between: StandIn, prefix: str, odd: Any) -> None:
    store = store_at(between.endpoint, prefix)
    between.answers = {"lease/grant": odd}
    with pytest.raises(pccl.UnavailableError, match="without a lease"):
        store.put("a", b"1")


def test_the_timeout_is_that_of_a_whole_request(between: StandIn, prefix: str) -> None:
    store = store_at(between.endpoint, prefix, timeout=1.0)
    store.put("a", b"1")
    between.each_byte_s = 0.4
    began = time.monotonic()
    with pytest.raises(pccl.UnavailableError, match="no complete answer arrived in 1 s"):
        store.get("a")
    assert time.monotonic() - began < 5  # a byte at a time it would be a minute


def test_a_slow_request_holds_up_no_other(between: StandIn, endpoint: str, prefix: str) -> None:
    store = store_at(between.endpoint, prefix, timeout=20.0)
    store.put("a", b"1")
    between.answers = {"lease/keepalive": None}
    between.each_byte_s = 0.05  # the renewing takes seconds for each answer
    time.sleep(LEASE)
    between.each_byte_s = 0.0
    began = time.monotonic()
    store.put("b", b"2")
    assert store_at(endpoint, prefix).get("b") == b"2"
    assert time.monotonic() - began < 10


def test_a_put_that_failed_is_not_put_later(between: StandIn, endpoint: str, prefix: str) -> None:
    with store_at(between.endpoint, prefix) as store:
        store.put("a", b"1")
        between.answers = {"kv/put": b"{", "kv/txn": b"{"}
        for key in ("a", "b"):
            with pytest.raises(pccl.UnavailableError):
                store.put(key, b"2")
        between.answers = {}
        time.sleep(2 * LEASE)
        other = store_at(endpoint, prefix)
        assert other.keys() == ["a"]
        assert other.get("a") == b"1"


@pytest.mark.parametrize(
    "wrong", ["127.0.0.1:2379", "http://", "http://h:x", "ftp://h", "https://"]
)
def test_what_is_no_endpoint_is_refused(wrong: str) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="http://host:port"):
        p2p.EtcdStore(wrong)


def test_threads_put_one_key_until_all_is_quiet(
    between: StandIn, endpoint: str, prefix: str
) -> None:
    with store_at(between.endpoint, prefix) as store:
        store.put("a", b"0")
        between.each_byte_s = 0.001  # requests overtake each other
        threads = [
            threading.Thread(target=store.put, args=("a", str(number).encode()))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        between.each_byte_s = 0.0
        mine = store._own["a"].value
        await_that(lambda: store_at(endpoint, prefix).get("a") == mine)
        time.sleep(LEASE)
        assert store.get("a") == mine


def test_a_handshake_of_tls_that_does_not_end_is_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = p2p.EtcdStore(f"https://127.0.0.1:{silent.getsockname()[1]}", timeout=0.5)
        with pytest.raises(pccl.UnavailableError, match=r"no connection in 0\.5 s"):
            store.get("a")


def test_etcd_is_reached_by_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl is installed here to make a certificate")
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    with etcd.real_server(tmp_path, certificate, key) as endpoint:
        refused = p2p.EtcdStore(endpoint)
        with pytest.raises(pccl.UnavailableError, match="certificate verify failed"):
            refused.get("a")
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        with p2p.EtcdStore(endpoint) as store:
            store.put("a", b"1")
            assert store.get("a") == b"1"

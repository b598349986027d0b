# SPDX-License-Identifier: Apache-2.0
"""Clients of PMI-1, PMI-2 and PMIx: answers that are right, wrong, late, and garbage."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl.launchers import meeting, mpi_library
from pccl.launchers.key_values import KeyValueExchange
from pccl.launchers.launcher import Launcher, Nowhere
from pccl.launchers.pmi1 import Pmi1Store, PmiPort
from pccl.launchers.pmi2 import Pmi2Store
from pccl.launchers.same_host import SameHostExchange
from pccl.launchers.wire import LONGEST_ANSWER, Wire, is_socket
from support.fake_pmi import FakePmi, scripted, served

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 30.0
SHORT_S = 0.2
SERVER = "the PMI server of a test"
INIT_1 = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
MAXES = b"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
NAME = b"cmd=my_kvsname kvsname=kvs_1\n"
INIT_2 = b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"


def soon() -> float:
    return time.monotonic() + PATIENCE_S


def pmi2(text: str) -> bytes:
    return f"{len(text):6d}{text}".encode()


FULL = pmi2("cmd=fullinit-response;rc=0;pmi-version=2;rank=0;size=1;")


def pmi1_store(*answers: bytes) -> Pmi1Store:
    return Pmi1Store(Wire(scripted(*answers), SERVER), soon())


def pmi2_store(*answers: bytes) -> Pmi2Store:
    return Pmi2Store(Wire(scripted(*answers), SERVER), 0, soon())


@pytest.mark.parametrize("version", [1, 2])
def test_ranks_exchange_a_text(version: int) -> None:
    server, found = FakePmi(3), []

    def exchange(rank: int) -> None:
        wire = Wire(served(server.serve), SERVER)
        store = Pmi1Store(wire, soon()) if version == 1 else Pmi2Store(wire, rank, soon())
        # Counted sessions end with the exchange.
        shared = KeyValueExchange(lambda _: store, is_own=True)
        found.append(shared.share("pccl1,text" if rank == 0 else None, soon()))

    ranks = [threading.Thread(target=exchange, args=(rank,)) for rank in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(PATIENCE_S)
    assert found == ["pccl1,text"] * 3
    assert server.finalized == 3


@pytest.mark.parametrize(
    ("open_store", "answers", "complaint"),
    [
        (pmi1_store, [b"garbage\n"], "answered 'garbage' instead of cmd=response_to_init"),
        (pmi1_store, [b"\xff\xfe\n"], "instead of ASCII text"),
        (pmi1_store, [b"x" * (LONGEST_ANSWER + 2)], "instead of a line of at most 65536 bytes"),
        (pmi1_store, [INIT_1[:-2] + b"-1 msg=no\n"], "refused cmd=init: rc=-1, no"),
        (pmi1_store, [INIT_2], "answered 'pmi_version=2' instead of pmi_version=1"),
        (pmi1_store, [INIT_1, NAME], "instead of cmd=maxes"),
        (pmi1_store, [INIT_1, b"cmd=maxes vallen_max=many\n"], "vallen_max= with a number"),
        (pmi1_store, [INIT_1, MAXES, b"cmd=my_kvsname\n"], "an answer with kvsname="),
        (pmi1_store, [INIT_1, b""], "has closed its connection; did it end?"),
        (pmi1_store, [INIT_1 + b"cmd=extra\n", MAXES], "answered 'cmd=extra' instead of cmd=maxes"),
        (pmi2_store, [b"garbage\n"], "instead of cmd=response_to_init with rc=0"),
        (pmi2_store, [INIT_1], "instead of pmi_version=2"),
        (pmi2_store, [INIT_2, b"-00001"], "a length of 1 to 65536 in 6 digits"),
        (pmi2_store, [INIT_2, b"999999"], "a length of 1 to 65536 in 6 digits"),
        (pmi2_store, [INIT_2, b"     0"], "a length of 1 to 65536 in 6 digits"),
        (pmi2_store, [INIT_2, pmi2("cmd=other;rc=0;")], "instead of cmd=fullinit-response"),
        (pmi2_store, [INIT_2, pmi2("cmd=fullinit-response;rc=7;errmsg=full;")], "rc=7, full"),
        (pmi2_store, [INIT_2, b"    40cmd=full", b""], "has closed its connection; did it end?"),
    ],
)
def test_wrong_answers_have_named_errors(
    open_store: Callable[..., object], answers: list[bytes], complaint: str
) -> None:
    with pytest.raises(pccl.UnavailableError) as caught:
        open_store(*answers)
    assert str(caught.value).startswith(SERVER)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("store", "complaint"),
    [
        (
            lambda: pmi1_store(INIT_1, MAXES, NAME, b"cmd=get_result rc=-1 msg=key_not_found\n"),
            "refused cmd=get: rc=-1, key_not_found",
        ),
        (lambda: pmi1_store(INIT_1, MAXES, NAME, b"cmd=get_result rc=0\n"), "with value="),
        (
            lambda: pmi2_store(INIT_2, FULL, pmi2("cmd=kvs-get-response;rc=0;found=FALSE;")),
            "has no value of key after the fence",
        ),
    ],
)
def test_a_missing_value_is_an_error(store: Callable[[], Pmi1Store], complaint: str) -> None:
    with pytest.raises(pccl.UnavailableError) as caught:
        store().get("key", soon())
    assert complaint in str(caught.value)


def test_semicolons_of_pmi2_are_doubled() -> None:
    store = pmi2_store(INIT_2, FULL, pmi2("cmd=kvs-get-response;rc=0;found=TRUE;value=a;;b;"))
    assert store.get("key", soon()) == "a;b"


def test_a_value_that_the_server_cannot_hold_is_refused_here() -> None:
    store = pmi1_store(INIT_1, MAXES.replace(b"1024", b"64"), NAME)
    with pytest.raises(pccl.UnavailableError, match="select fewer interfaces by PCCL_SOCKET_IFNAM"):
        store.put("key", "x" * 64, soon())


@pytest.mark.parametrize(
    "store",
    [lambda: pmi1_store(INIT_1, MAXES, NAME), lambda: pmi2_store(INIT_2, FULL)],
    ids=["pmi1", "pmi2"],
)
def test_a_rank_that_stays_away_ends_the_wait(store: Callable[[], Pmi1Store]) -> None:
    opened = store()
    exchange = KeyValueExchange(lambda _: opened, is_own=True)
    with pytest.raises(pccl.TimeoutError) as caught:
        exchange.share(None, time.monotonic() + SHORT_S)
    assert str(caught.value) == (
        f"not every rank of the job has come to this exchange in time ({SERVER} did not answer in "
        "time); does each of them create the group?"
    )


@pytest.mark.parametrize("kind", [Pmi1Store, lambda wire, end: Pmi2Store(wire, 0, end)])
def test_a_server_that_does_not_answer_ends_the_wait(kind: Callable[..., object]) -> None:
    ours, theirs = socket.socketpair()
    with theirs, pytest.raises(pccl.TimeoutError, match=f"{SERVER} did not answer in time"):
        kind(Wire(ours, SERVER), time.monotonic() + SHORT_S)


def test_an_inherited_descriptor_stays_blocking_and_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire = Wire.inherited(ours.fileno(), SERVER)
        theirs.sendall(b"first\nsecond\n")
        assert wire.receive_line(soon()) == "first"
        wire.close()
        assert os.get_blocking(ours.fileno())
        assert ours.recv(100) == b"second\n"
        assert is_socket(ours.fileno())
    assert not is_socket(10**9)


def port_server(*answers: bytes) -> tuple[socket.socket, str]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                for answer in answers:
                    connection.sendall(answer)
                connection.recv(4096)

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_pmi_port_tells_rank_and_size() -> None:
    settings = b"cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n"
    listener, address = port_server(settings)
    with listener:
        port = PmiPort.connected(address, "2", SERVER, soon())
        assert (port.rank, port.size) == (2, 4)
        assert PmiPort.connected(address, "2", SERVER, soon()) is port
    port.wire.close()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"hello\n", "instead of cmd=initack"),
        (b"cmd=initack\ncmd=set size=many\n", "instead of cmd=set with a number"),
        (
            b"cmd=initack\ncmd=set size=2\ncmd=set rank=2\ncmd=set debug=0\n",
            "instead of rank and size",
        ),
    ],
)
def test_a_wrong_pmi_port_has_a_named_error(answer: bytes, complaint: str) -> None:
    listener, address = port_server(answer)
    with listener, pytest.raises(pccl.UnavailableError) as caught:
        PmiPort.connected(address, "0", SERVER, soon())
    assert complaint in str(caught.value)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:99999999"])
def test_an_address_of_a_pmi_port_is_checked(address: str) -> None:
    with pytest.raises(pccl.UnavailableError, match="cannot be reached"):
        PmiPort.connected(address, "0", SERVER, soon())


@pytest.mark.parametrize(
    ("path", "is_mpi"),
    [
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", True),
        ("/opt/venv/lib/libmpi.so.12", True),
        ("/usr/lib/libmpich.so.12.2.2", True),
        ("/opt/cray/libmpi_cray.so.12", True),
        ("/opt/venv/mpi4py.libs/libmpi-0123abcd.so.12", True),
        ("/usr/lib/libmp3lame.so.0", False),
        ("/usr/lib/libmpfr.so.6", False),
        ("/usr/lib/libmpi_mpifh.txt", False),
    ],
)
def test_mpi_libraries_are_known_by_their_names(path: str, is_mpi: bool) -> None:
    assert bool(mpi_library._LIBRARY.search(path)) == is_mpi


def test_a_process_without_mpi_has_not_initialized_it() -> None:
    assert not mpi_library.has_been_initialized()


def test_ranks_of_one_host_exchange_a_text_and_give_the_name_up() -> None:
    job = f"test-{os.getpid()}-{time.monotonic_ns()}"
    for text in ("first", "second"):  # two programs of one step, one after the other
        found: list[str] = []
        others = [
            threading.Thread(
                target=lambda rank=rank, found=found: found.append(
                    SameHostExchange(job, rank, 3).share(None, soon())
                )
            )
            for rank in (1, 2)
        ]
        for other in others:
            other.start()
        first = _shared_when_free(job, text)
        for other in others:
            other.join(PATIENCE_S)
        assert (first, found) == (text, [text] * 2)


def _shared_when_free(job: str, text: str) -> str:
    """Share a text as soon as the thread of the program before has closed its socket."""
    while True:
        try:
            return SameHostExchange(job, 0, 3).share(text, soon())
        except pccl.UnavailableError:
            time.sleep(0.01)


def test_a_second_rank_0_of_a_host_is_refused() -> None:
    job = f"test-{os.getpid()}-{time.monotonic_ns()}"
    SameHostExchange(job, 0, 2).share("text", time.monotonic() + PATIENCE_S)
    with pytest.raises(pccl.UnavailableError, match="does another process of this job have rank 0"):
        SameHostExchange(job, 0, 2).share("text", soon())
    assert SameHostExchange(job, 1, 2).share(None, soon()) == "text"


def test_a_rank_asks_again_where_an_earlier_program_serves_it_no_more() -> None:
    job = f"test-{os.getpid()}-{time.monotonic_ns()}"
    address = SameHostExchange(job, 0, 2)._address
    found: list[str] = []
    with socket.socket(socket.AF_UNIX) as earlier:
        earlier.bind(address)
        earlier.listen(1)
        rank = threading.Thread(
            target=lambda: found.append(SameHostExchange(job, 1, 2).share(None, soon()))
        )
        rank.start()
        earlier.accept()[0].close()
    SameHostExchange(job, 0, 2).share("text", soon())
    rank.join(PATIENCE_S)
    assert found == ["text"]


def test_a_missing_rank_0_ends_the_wait() -> None:
    with pytest.raises(pccl.TimeoutError, match="did not listen in time") as caught:
        SameHostExchange("test-nobody", 1, 2).share(None, time.monotonic() + SHORT_S)
    assert caught.value.rank == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "pccl1,00,127.0.0.1:1",
        f"pccl1,{'g' * 64},127.0.0.1:1",
        f"pccl1,{'0' * 64}",
        f"pccl2,{'0' * 64},127.0.0.1:1",
        f"pccl1,{'0' * 64}{',a' * 9}",
    ],
)
def test_a_text_that_no_rank_0_has_published_is_refused(text: str) -> None:
    launcher = Launcher("a launcher", 1, 2, Nowhere(""))
    with pytest.raises(pccl.UnavailableError, match="a launcher has no addresses of rank 0"):
        meeting._way_of(text, launcher)


def test_addresses_that_do_not_fit_are_left_out() -> None:
    secret, addresses = b"s" * 32, [f"[fd00::{number}]:4000" for number in range(100)]
    text = meeting._text_of(addresses, secret)
    assert 900 < len(text) <= 1000
    launcher = Launcher("a launcher", 1, 2, Nowhere(""))
    short = meeting._text_of(addresses[:8], secret)
    assert meeting._way_of(short, launcher) == (addresses[:8], secret)

# SPDX-License-Identifier: Apache-2.0
"""pccl.p2p: sessions of one process and of several, against what numpy copies."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl import _core, p2p
from pccl.bench import holdings, p2p_peers, p2p_soak, p2p_whole
from pccl.cli import p2p as p2p_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

NBYTES = 1 << 20


@pytest.fixture(params=["shm", "tcp"])
def transports(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def pair(transports: str) -> Iterator[tuple[p2p.Session, p2p.Session]]:
    with (
        p2p.Session("prefill-0", transports=transports) as a,
        p2p.Session("decode-3", transports=transports) as b,
    ):
        b.load(a.connection_info())
        yield a, b


def random_bytes(seed: int, nbytes: int = NBYTES) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def imported(owner: p2p.Session, reader: p2p.Session, memory: p2p.Memory) -> p2p.RemoteMemory:
    return reader.import_memory(owner.name, memory.descriptor().serialize())


def test_a_slice_is_read_and_the_notification_follows(pair, transports):
    a, b = pair
    cache, mine = random_bytes(1), random_bytes(2)
    expected = mine.copy()
    expected[100:1100] = cache[5:1005]
    remote = imported(a, b, a.register(cache))
    local = b.register(mine)
    work = b.read(local[100:1100], remote[5:1005], notify=b"block 7")
    work.wait(timeout=20)
    assert work.done()
    np.testing.assert_array_equal(mine, expected)
    assert a.notifications(timeout=20) == [("decode-3", b"block 7")]
    stats = work.stats()
    assert stats.nbytes == 1000
    assert stats.seconds > 0
    assert stats.path.startswith(transports)
    assert a.peers() == ["decode-3"]


def test_messages_with_tags_go_to_their_receives(pair):
    a, b = pair
    a.load(b.connection_info())
    there, here = random_bytes(1), random_bytes(2)
    expected = here.copy()
    theirs, mine = a.register(there), b.register(here)
    outgoing, incoming = a.transfer("decode-3", chunk=4096), b.transfer("prefill-0")
    second = incoming.post_recv(mine, 5000, 1000, tag=2)
    long = incoming.post_recv(mine, 10_000, 50_000, tag=3)
    first = incoming.post_recv(mine, 0, 2000, tag=1)
    assert first.stage == "posted"
    outgoing.post_send(theirs, 100, 1500, tag=1)
    outgoing.post_send(theirs, 7000, 1000, tag=2)
    outgoing.post_send(theirs, 8000, 50_000, tag=3)
    outgoing.wait(timeout=20)
    incoming.wait(timeout=20)
    assert outgoing.is_complete()
    assert (first.stage, second.stage) == ("consumed", "consumed")
    assert (first.nbytes, second.nbytes, long.nbytes) == (1500, 1000, 50_000)
    assert first.done()
    expected[:1500] = there[100:1600]
    expected[5000:6000] = there[7000:8000]
    expected[10_000:60_000] = there[8000:58_000]
    np.testing.assert_array_equal(here, expected)


def test_messages_are_given_up_are_too_long_and_have_a_window(pair):
    a, b = pair
    a.load(b.connection_info())
    theirs, mine = a.register(random_bytes(1)), b.register(random_bytes(2))
    outgoing = a.transfer("decode-3", window=1)
    unwanted = outgoing.post_send(theirs, 0, 10, tag=1)
    with pytest.raises(pccl.TimeoutError, match="1 sends have not ended"):
        outgoing.post_send(theirs, 0, 10, tag=2, timeout=0.05)
    with pytest.raises(pccl.TimeoutError, match="a send of 10 bytes with tag 1"):
        outgoing.wait(timeout=0.05)
    assert not unwanted.done()
    outgoing.cancel()
    with pytest.raises(pccl.AbortedError, match="given up"):
        outgoing.wait(timeout=20)
    incoming = b.transfer("prefill-0")
    incoming.post_recv(mine, 0, 9, tag=3)
    outgoing.post_send(theirs, 0, 10, tag=3)
    for transfer in outgoing, incoming:
        with pytest.raises(pccl.InvalidArgumentError, match="10 bytes with tag 3"):
            transfer.wait(timeout=20)
    for offset, nbytes, tag in ((-1, 1, 0), (0, -1, 0), (0, 1, -1), (0, 1, 2**64), (NBYTES, 1, 0)):
        with pytest.raises(pccl.InvalidArgumentError):
            outgoing.post_send(theirs, offset, nbytes, tag=tag)
    with pytest.raises(pccl.InvalidArgumentError):
        a.transfer("decode-3", window=0)
    for chunk in (-1, 4095, (4 << 20) + 1):
        with pytest.raises(pccl.InvalidArgumentError, match="chunk"):
            a.transfer("decode-3", chunk=chunk)
    with pytest.raises(pccl.InvalidArgumentError, match="nobody"):
        a.transfer("nobody")


def test_errors_name_the_peer_that_the_call_was_with(pair):
    a, b = pair
    a.load(b.connection_info())
    theirs, mine = a.register(random_bytes(1)), b.register(random_bytes(2))
    remote = imported(a, b, theirs)
    outgoing = a.transfer("decode-3", window=1)
    message = outgoing.post_send(theirs, 0, 10)
    raised = {}

    def expect(kind: type[pccl.Error], call, *arguments, **options) -> None:
        with pytest.raises(kind) as error:
            call(*arguments, **options)
        raised[call] = error.value.peer

    expect(pccl.TimeoutError, message.wait, 0.01)
    expect(pccl.TimeoutError, outgoing.wait, 0.01)
    expect(pccl.TimeoutError, outgoing.post_send, theirs, 0, 10, timeout=0.01)
    assert set(raised.values()) == {"decode-3"}
    raised.clear()
    theirs_is_free = a.transfer("decode-3")
    outgoing.cancel()
    expect(pccl.AbortedError, message.wait, 20)
    assert b.accept("prefill-0", 20) == "prefill-0"
    a.close()
    expect(pccl.PeerLostError, b.read(mine, remote).wait, 20)
    # The connection that a has made may be found lost a moment later than b's own.
    until = time.monotonic() + 20
    with contextlib.suppress(pccl.PeerLostError):
        while time.monotonic() < until:
            b.connect("prefill-0", 20)
    expect(pccl.PeerLostError, b.connect, "prefill-0", 20)
    expect(pccl.PeerLostError, b.transfer("prefill-0").post_recv(mine, 0, 1).wait, 20)
    expect(pccl.AbortedError, theirs_is_free.post_send, theirs, 0, 10)
    expect(pccl.InvalidArgumentError, b.import_memory, "prefill-0", b"none")
    expect(pccl.InvalidArgumentError, b.notify, "nobody", b"word")
    assert list(raised.values()) == [
        *("decode-3", "prefill-0", "prefill-0", "prefill-0", "decode-3", "prefill-0", "nobody")
    ]
    with pytest.raises(pccl.InvalidArgumentError) as other:
        b.load(b"none")
    assert other.value.peer is None


def test_a_peer_is_accepted_and_lists_its_published_memory(pair):
    a, b = pair
    cache, mine = random_bytes(1), random_bytes(2)
    memory, local = a.register(cache), b.register(mine)
    a.publish("cache", memory)
    with pytest.raises(pccl.TimeoutError):
        a.accept(timeout=0.05)
    remote = b.fetch("prefill-0", "cache", timeout=20)
    assert remote.owner == "prefill-0"
    assert a.accept(timeout=20) == "decode-3"
    assert a.accept("decode-3", timeout=20) == "decode-3"
    pages = b.transfer("prefill-0", window=2)
    for page in range(0, NBYTES, NBYTES // 8):
        end = page + NBYTES // 8
        pages.post_read(local[page:end], remote[page:end], timeout=20)
    pages.wait(timeout=20)
    np.testing.assert_array_equal(mine, cache)
    mine[:100] = 9
    written = pages.post_write(local[:100], remote[:100], notify=b"written", timeout=20)
    written.wait(timeout=20)
    assert a.notifications(timeout=20) == [("decode-3", b"written")]
    assert (cache[:100] == 9).all()
    with pytest.raises(pccl.InvalidArgumentError, match="100 and 99"):
        pages.post_write(local[:100], remote[:99])
    a.withdraw("cache")
    with pytest.raises(pccl.UnavailableError, match='no memory "cache"; there is none') as none:
        b.fetch("prefill-0", "cache", timeout=20)
    assert none.value.peer == "prefill-0"
    for name in ("", "a b", "x" * 65):
        with pytest.raises(pccl.InvalidArgumentError):
            a.publish(name, memory)
    with pytest.raises(pccl.InvalidArgumentError, match="None awaits any"):
        a.accept("")


def test_torch_tensors_bytearrays_and_addresses_are_memory(pair):
    torch = pytest.importorskip("torch")
    a, b = pair
    there = torch.arange(1000, dtype=torch.bfloat16)
    remote = imported(a, b, a.register(there))
    assert remote.nbytes == 2000
    here = bytearray(2000)
    b.read(b.register(here), remote).wait(20)
    assert bytes(here) == there.view(torch.uint8).numpy().tobytes()
    array = np.zeros(2000, np.uint8)
    b.read(b.register(array.ctypes.data, array.nbytes), remote).wait(20)
    assert array.tobytes() == bytes(here)


def test_allocated_memory_is_mapped_by_peers_of_the_host(pair, transports):
    a, b = pair
    theirs, mine = a.allocate(NBYTES), b.allocate(NBYTES)
    theirs.array()[:] = random_bytes(3)
    work = b.read(mine, imported(a, b, theirs))
    work.wait(20)
    np.testing.assert_array_equal(mine.array(), random_bytes(3))
    assert work.stats().path == {"shm": "shm, mapped", "tcp": "tcp, by messages"}[transports]


def test_plans_move_what_fancy_indexing_moves(pair):
    a, b = pair
    generator = np.random.default_rng(5)
    block, count = 64, NBYTES // 64
    cache, mine = random_bytes(6), np.zeros(NBYTES, np.uint8)
    there, here = generator.permutation(count), generator.permutation(count)
    remote, local = imported(a, b, a.register(cache)), b.register(mine)

    def rows(blocks: np.ndarray) -> np.ndarray:
        return np.stack([blocks * block, np.full(count, block)], axis=1)

    plan = b.prepare(local, rows(here), remote, rows(there))
    assert len(plan) == count
    assert plan.nbytes == NBYTES
    chosen = generator.choice(count, 1000, replace=False)
    b.post_read(plan, chosen).wait(20)
    expected = np.zeros((count, block), np.uint8)
    expected[here[chosen]] = cache.reshape(count, block)[there[chosen]]
    np.testing.assert_array_equal(mine.reshape(count, block), expected)
    b.post_read(plan).wait(20)
    expected[here] = cache.reshape(count, block)[there]
    np.testing.assert_array_equal(mine.reshape(count, block), expected)


def test_strided_blocks_are_columns(pair):
    a, b = pair
    theirs = random_bytes(7, 10_000).reshape(100, 100)
    mine = random_bytes(8, 10_000).reshape(100, 100)
    remote, local = imported(a, b, a.register(theirs)), b.register(mine)
    expected = theirs.copy()
    expected[:, 10:15] = mine[:, 70:75]
    plan = b.prepare(local, (70, 5, 100, 100), remote, (10, 5, 100, 100))
    b.post_write(plan).wait(20)
    np.testing.assert_array_equal(theirs, expected)


def test_faults_are_reported_before_anything_moves(pair):
    a, b = pair
    remote, local = imported(a, b, a.register(random_bytes(1))), b.register(random_bytes(2))
    for wrong in [slice(0, NBYTES + 1), slice(-1, None), slice(5, 4), slice(0, 10, 2)]:
        with pytest.raises(pccl.InvalidArgumentError):
            remote[wrong]
    with pytest.raises(pccl.InvalidArgumentError, match="10 and 11"):
        b.read(local[:10], remote[:11])
    with pytest.raises(pccl.InvalidArgumentError, match="block 1"):
        b.prepare(local, np.array([[0, 8], [NBYTES, 8]]), remote, (0, 8, 8, 2))
    with pytest.raises(pccl.InvalidArgumentError, match="at least 0"):
        b.prepare(local, np.array([[-8, 8]]), remote, (0, 8, 8, 1))
    plan = b.prepare(local, (0, 8, 8, 2), remote, (0, 8, 8, 2))
    for indices in [[2], [-1], [], [0.5]]:
        with pytest.raises(pccl.InvalidArgumentError):
            b.post_read(plan, indices)
    with pytest.raises(pccl.InvalidArgumentError, match="no session"):
        b.connect("nobody")
    with pytest.raises(pccl.InvalidArgumentError):
        b.load(b"no info")
    with pytest.raises(pccl.InvalidArgumentError):
        b.register(np.zeros((4, 4))[:, 1])
    with pytest.raises(pccl.InvalidArgumentError):
        b.register(4096)


def test_arguments_of_other_types_and_beyond_the_last_address_are_refused(pair):
    a, b = pair
    a.load(b.connection_info())
    memory = a.register(random_bytes(1))
    with pytest.raises(TypeError, match=r"key is 3 \(int\): it must be a slice"):
        memory[3]
    for tag in (None, True, 1.0):
        with pytest.raises(TypeError, match=f"tag is {tag}.*it must be an int"):
            a.transfer("decode-3").post_send(memory, 0, 1, tag=tag)
    with pytest.raises(pccl.InvalidArgumentError, match="reach beyond the last address"):
        a.register((1 << 64) - 8, 64)
    with pytest.raises((TypeError, pccl.InvalidArgumentError)):
        a.register(True, 5)


def test_deregistered_memory_is_not_touched(pair, transports):
    a, b = pair
    cache = random_bytes(1)
    memory = a.register(cache)
    remote, local = imported(a, b, memory), b.register(random_bytes(2))
    b.read(local, remote).wait(20)
    memory.deregister()
    with pytest.raises(pccl.UnavailableError, match='session "prefill-0"'):
        b.write(local, remote).wait(20)
    np.testing.assert_array_equal(cache, random_bytes(1))
    assert a.refused_requests == (1 if transports == "tcp" else 0)


def test_memory_of_another_session_is_refused(pair):
    a, b = pair
    theirs = a.register(random_bytes(1))
    a.publish("cache", theirs)
    as_if_own = p2p.Memory(theirs._core, b._core)
    with pytest.raises(pccl.InvalidArgumentError, match="another session"):
        as_if_own.deregister()
    with pytest.raises(pccl.InvalidArgumentError, match="another session"):
        b.publish("cache", theirs)
    with pytest.raises(pccl.InvalidArgumentError, match="another session"):
        b.transfer("prefill-0").post_recv(theirs, 0, 10)
    remote = b.fetch("prefill-0", "cache", 20)
    b.read(b.register(np.zeros(NBYTES, np.uint8)), remote).wait(20)


def test_more_memory_than_can_be_had_is_not_allocated(pair):
    a, _ = pair
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for nbytes in 4 * machine, 2**62, 2**64 - 1:
        with pytest.raises(pccl.ResourceExhaustedError, match=f"cannot allocate {nbytes} bytes"):
            a.allocate(nbytes)
    assert a.allocate(NBYTES).nbytes == NBYTES


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.alone
def test_names_that_came_and_went_take_no_memory():
    with p2p.Session("hub", transports="tcp") as hub:

        def come_and_go(names: range) -> None:
            for name in names:
                with p2p.Session(f"guest-{name:040}", transports="tcp") as guest:
                    guest.load(hub.connection_info())
                    guest.connect("hub", 20)

        come_and_go(range(600))
        before = resident_bytes()
        come_and_go(range(600, 1600))
        assert resident_bytes() - before < 1000 * 1024


def test_memory_stays_registered_without_a_reference(pair):
    a, b = pair
    remote = imported(a, b, a.register(np.full(NBYTES, 3, np.uint8)))
    gc.collect()
    local = b.allocate(NBYTES)
    b.read(local, remote).wait(20)
    assert int(local.array().sum()) == 3 * NBYTES


def test_an_array_of_allocated_memory_outlives_its_registration(pair):
    a, _ = pair
    memory = a.allocate(NBYTES)
    array = memory.array()
    memory.deregister()
    del memory
    a.close()
    gc.collect()
    array[:] = 7
    assert int(array.sum()) == 7 * NBYTES


def serve(pipe: Connection, transports: str, fill: int) -> None:
    session = p2p.Session("prefill-0", transports=transports)
    memory = session.register(np.full(NBYTES, fill, np.uint8))
    pipe.send((session.connection_info(), memory.descriptor().serialize()))
    pipe.recv()


def start(transports: str, fill: int) -> tuple[multiprocessing.Process, bytes, bytes]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, transports, fill), daemon=True)
    process.start()
    assert here.poll(60)
    info, descriptor = here.recv()
    process.pipe = here  # its end is the end of the child
    return process, info, descriptor


def test_a_killed_peer_is_lost_and_its_successor_reached(transports):
    with p2p.Session("decode-3", transports=transports) as b:
        local = b.allocate(NBYTES)
        process, info, descriptor = start(transports, 1)
        b.load(info)
        remote = b.import_memory("prefill-0", descriptor)
        b.read(local, remote).wait(20)
        assert (local.array() == 1).all()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(pccl.PeerLostError, match=rf"process {process.pid} ") as lost:
            b.read(local, remote).wait(20)
        assert b.peers() == []
        assert lost.value.rank is None
        assert lost.value.peer == "prefill-0"
        assert lost.value.pid == process.pid
        successor, info, descriptor = start(transports, 2)
        b.load(info)
        with pytest.raises(pccl.UnavailableError, match="another incarnation") as stale:
            b.read(local, remote)
        assert stale.value.peer == "prefill-0"
        b.read(local, b.import_memory("prefill-0", descriptor)).wait(20)
        assert (local.array() == 2).all()
        successor.kill()
        successor.join()


def test_a_wait_ends_with_its_deadline_and_with_ctrl_c(transports):
    with p2p.Session("alone", transports=transports) as session:
        assert session.notifications(timeout=0.1) == []
        old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(KeyboardInterrupt):
                session.notifications(timeout=None)
        finally:
            signal.signal(signal.SIGALRM, old)


def rows_of_bench(output: Path, transports: str, **options: object) -> list[dict[str, Any]]:
    """Return the rows of a short bench, which has written them."""
    common = {"smallest": "8K", "largest": "8K", "blocks": 10, "block": "4K", "seconds": 0.01}
    p2p_command.bench(transports=transports, output=output, **common | options)
    rows = json.loads(output.read_text())["rows"]
    assert all(row["seconds"] > 0 and row["peer_seconds"] > 0 for row in rows)
    return rows


def test_the_bench_prints_a_row_for_each_case_and_writes_them(tmp_path, capsys):
    rows = rows_of_bench(tmp_path / "rows.json", "shm", batch=[1, 3])
    assert [
        (row["path"], row["op"], row["case"], row["blocks"], row["nbytes"]) for row in rows
    ] == [
        (path, op, case, blocks, nbytes)
        for path in ["shm, mapped", "shm, by the kernel"]
        for case, blocks, nbytes in [
            ("latency", 1, 8),
            ("latency", 1, 1024),
            ("bandwidth", 1, 8192),
            ("3 blocks", 3, 24576),
            ("10 blocks", 10, 40960),
        ]
        for op in ["read", "write"]
    ]
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


@pytest.mark.parametrize("peer", ["iperf3", "socket stream"])
def test_over_tcp_the_bench_compares_with_one_stream(tmp_path, capsys, monkeypatch, peer):
    if peer == "socket stream":
        monkeypatch.setattr(p2p_peers.shutil, "which", lambda _: None)
    elif shutil.which("iperf3") is None:
        pytest.skip("no iperf3 is installed here: apt-get install iperf3")
    rows = rows_of_bench(tmp_path / "rows.json", "tcp")
    peers = {row["peer"]: row["nbytes"] / row["peer_seconds"] for row in rows}
    assert set(peers) == {"socket round trip", peer}
    assert peers[peer] > 1e6  # a stream of a host, in bytes a second
    capsys.readouterr()


def test_a_ping_pong_ends_with_its_other_end():
    here, there = socket.socketpair()
    with here:
        echo = threading.Thread(target=_core._echo, args=(there.fileno(),))
        echo.start()
        times = _core._time_round_trips(here.fileno(), 100_000, 3)
        assert len(times) == 3
        assert min(times) > 0
        here.shutdown(socket.SHUT_WR)
        echo.join(20)
        assert not echo.is_alive()
        there.close()
        with pytest.raises(pccl.UnavailableError, match="bare socket"):
            _core._time_round_trips(here.fileno(), 8, 1)


def test_the_bench_sweeps_over_sockets_chunks_and_windows(tmp_path, capsys):
    rows = rows_of_bench(
        tmp_path / "rows.json",
        "tcp",
        smallest="64K",
        largest="64K",
        sockets=[1, 2],
        chunk=["16K", "40000"],  # which leaves a shorter one
        window=[1, 3],
    )
    swept = [(row["path"], row["case"]) for row in rows if row["case"].startswith("chunk")]
    assert swept == [
        (f"tcp, {sockets} sockets", f"chunk {chunk}, window {window}")
        for sockets in (1, 2)
        for chunk in (16384, 40000)
        for window in (1, 3)
    ]
    capsys.readouterr()


def test_the_bench_refuses_other_devices():
    with pytest.raises(ValueError, match='--device is cpu or cuda, not "gpu"'):
        p2p_command.bench(device="gpu")


def test_the_bench_of_gpus_needs_one():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ValueError, match="torch finds no GPU on this machine"):
        p2p_command.bench(device="cuda")


def test_a_soak_ends_after_so_many_kills(transports):
    tally = p2p_soak.soak(p2p_soak.Soak(transports, seed=5, seconds=0, kills=4))
    assert tally.kills == 4
    assert tally.wrong == 0
    assert tally.left == []


def test_a_short_soak_finds_nothing_wrong(transports):
    tally = p2p_soak.soak(p2p_soak.Soak(transports, seed=7, seconds=3.0))
    assert tally.wrong == 0
    assert tally.left == []
    assert tally.kills >= 1
    assert tally.reads > 0
    assert tally.writes > 0
    assert tally.notifications > 0
    assert tally.messages > 0
    assert not tally.has_failed()


def test_a_soak_fails_where_memory_grows(monkeypatch):
    tally = p2p_soak.Tally()
    assert not tally.has_failed()
    for failing in ({"grown": (32 << 20) + 1}, {"wrong": 1}, {"left": ["1 threads"]}):
        assert p2p_soak.Tally(**failing).has_failed()
    hoard: list[bytes] = []
    monkeypatch.setattr(p2p_soak, "_WARM", 0.0)
    gc.collect()
    enough = p2p_soak._resident() + (64 << 20)

    def hoards(_: object) -> None:  # also where memory of earlier tests is given back meanwhile
        while p2p_soak._resident() < enough:
            hoard.append(bytes([1]) * (16 << 20))
        time.sleep(0.01)

    monkeypatch.setattr(p2p_soak.Soaker, "step", hoards)
    tally = p2p_soak.soak(p2p_soak.Soak("shm", seed=1, seconds=0.5))
    assert tally.grown > 32 << 20
    assert tally.has_failed()


def test_nothing_is_left_of_peers_that_went_or_were_killed(transports):
    """The short form of ``pccl p2p soak --seconds 600``, which has some 1500 of them."""
    soaker = p2p_soak.Soaker(p2p_soak.Soak(transports, seed=3, seconds=1.0))
    with soaker.session:
        soaker.kill()
        soaker.settle()
        before = holdings.at_rest()
        for _ in range(3):
            soaker.kill()
            for _ in range(30):
                soaker.transfer()
                soaker.session.disconnect("target")
        soaker.settle()
        assert holdings.left_since(before) == []
        soaker.life.kill()


def test_what_is_left_is_seen_and_garbage_is_not(transports):
    with p2p.Session("a", transports=transports) as session:
        before = holdings.at_rest()
        memory = session.allocate(1 << 16)
        expected = ["1 descriptors", "1 mappings of shared memory"]
        assert holdings.left_since(before, patience=0) == expected
        gc.disable()
        try:
            cycle = [memory]
            cycle.append(cycle)
            memory.deregister()
            del memory, cycle
            assert holdings.at_rest() == before
        finally:
            gc.enable()


def test_what_never_comes_to_rest_is_not_counted(monkeypatch):
    counts = itertools.count()
    monkeypatch.setattr(holdings, "_held", lambda: {"descriptors": next(counts)})
    with pytest.raises(TimeoutError, match="still changes"):
        holdings.at_rest(patience=0.1)


def test_a_whole_transfer_compares_all_bytes(transports, monkeypatch):
    """The short form of ``pccl p2p soak --whole 8G``: two parts, and a piece of one."""
    assert p2p_whole.wrong_parts_of(transports, (64 << 20) + 4096) == 0
    monkeypatch.setattr(p2p_whole, "_THEIRS", 2)  # unlike what the other process has
    assert p2p_whole.wrong_parts_of(transports, 1 << 20) == 1


def test_a_soak_sees_a_byte_that_is_wrong_and_a_word_that_is_lost():
    soaker = p2p_soak.Soaker(p2p_soak.Soak("shm", seed=7, seconds=1.0))
    with soaker.session:
        soaker.settle()
        assert soaker.tally.wrong == 0
        soaker.life.expected[12345] ^= 1
        soaker.settle()
        assert soaker.tally.wrong == 1
        soaker.life.expected[12345] ^= 1
        soaker.life.received_notifications = lambda: 2
        soaker.settle()
        assert soaker.tally.wrong == 2
        soaker.life.kill()


@pytest.mark.parametrize("sockets", [1, 5])
def test_the_requested_number_of_sockets_carries_a_sessions_data(sockets: int) -> None:
    with (
        p2p.Session("a", transports="tcp", tcp_sockets=sockets) as a,
        p2p.Session("b", transports="tcp", tcp_sockets=sockets) as b,
    ):
        b.load(a.connection_info())
        cache, mine = random_bytes(1, 8 << 20), random_bytes(2, 8 << 20)
        remote = imported(a, b, a.register(cache))
        local = b.register(mine)
        before = len(sockets_of_this_process())
        b.read(local[:], remote[:]).wait(timeout=20)
        np.testing.assert_array_equal(mine, cache)
        # Both ends are here, and each direction has two more: for messages, and for signs of life.
        assert len(sockets_of_this_process()) - before == 2 * 2 * (sockets + 2)


def sockets_of_this_process() -> list[str]:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            links.append(str(entry.readlink()))
    return [link for link in links if link.startswith("socket:")]


@pytest.mark.parametrize("sockets", [-1, 17])
def test_numbers_of_sockets_that_there_cannot_be_are_refused(sockets: int) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=f"{sockets} TCP sockets: 1 to 16"):
        p2p.Session("a", tcp_sockets=sockets)


def test_the_flight_record_has_what_sessions_did():
    with (
        p2p.Session("recorder", transports="shm") as a,
        p2p.Session("recorded", transports="shm") as b,
    ):
        b.load(a.connection_info())
        theirs, mine = a.register(random_bytes(1)), b.register(random_bytes(2))
        remote = b.import_memory("recorder", theirs.descriptor().serialize())
        b.read(mine[:100], remote[:100]).wait(20)
        theirs.deregister()
        with pytest.raises(pccl.UnavailableError):
            b.write(mine[:30], remote[:30]).wait(20)
        b.disconnect("recorder")
    sessions = pccl.diagnostics.flight_record()["sessions"]
    events = [each for each in sessions["events"] if each["session"] == "recorded"]
    assert [each["event"] for each in events] == ["connected", "lost"]
    assert all(each["peer"].startswith('session "recorder" (process ') for each in events)
    assert "has disconnected" in events[-1]["text"]
    read, write = (each for each in sessions["transfers"] if each.get("session") == "recorded")
    assert (read["operation"], read["bytes"], read["state"]) == ("read", 100, "completed")
    assert read["path"] == "shm, by the kernel"
    assert read["posted_ns"] <= read["ended_ns"] <= write["posted_ns"]
    assert read["peer"] == events[0]["peer"]
    assert (write["operation"], write["state"]) == ("write", "failed")
    assert write["error"] == "unavailable"
    assert "error" not in read

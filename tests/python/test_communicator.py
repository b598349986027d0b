# SPDX-License-Identifier: Apache-2.0
"""``pccl.Communicator`` over numpy arrays, against numpy."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from multiprocessing.managers import BaseManager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from support.launch import warm_processes
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.multiproc

LIMIT = 60.0
BROKEN = "broken"  # what a body returns that leaves no usable group


def _child(
    body: Callable[..., Any],
    rank: int,
    size: int,
    rendezvous: Any,
    variables: dict[str, str],
    failures: Any,
) -> None:
    os.environ.update(variables)
    try:
        comm = pccl.Communicator(rank=rank, world_size=size, rendezvous=rendezvous, timeout=LIMIT)
        if body(comm) != BROKEN:
            comm.barrier()
    except BaseException:
        failures.put(f"rank {rank}:\n{traceback.format_exc()}")
        raise


def run_ranks(body: Callable[..., Any], size: int, rendezvous: Any, **variables: str) -> None:
    """Run ``body(comm)`` in ``size`` processes, with these variables, and report what failed."""
    context = warm_processes()
    failures = context.SimpleQueue()
    ranks = [
        context.Process(target=_child, args=(body, rank, size, rendezvous, variables, failures))
        for rank in range(size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(2 * LIMIT)
        if process.is_alive():
            process.kill()
    assert failures.empty(), failures.get()
    assert [process.exitcode for process in ranks] == [0] * size


def of_rank(rank: int, count: int, dtype: Any = np.float32) -> np.ndarray:
    """What a rank contributes: the same everywhere."""
    return np.random.default_rng(rank).integers(1, 5, count).astype(dtype)


def everybody(comm: pccl.Communicator, count: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [of_rank(rank, count, dtype) for rank in range(comm.world_size)]


def collectives(comm: pccl.Communicator) -> None:
    rank, size = comm.rank, comm.world_size
    for count in (0, 1, 1000, 100_003):
        parts = everybody(comm, count)

        x = of_rank(rank, count)
        comm.all_reduce(x)
        np.testing.assert_array_equal(x, sum(parts))

        x = of_rank(rank, count)
        comm.reduce(x, size - 1, "max")
        expected = np.maximum.reduce(parts) if rank == size - 1 else parts[rank]
        np.testing.assert_array_equal(x, expected)

        x = of_rank(rank, count)
        comm.broadcast(x, root=size - 1)
        np.testing.assert_array_equal(x, parts[size - 1])

        out = np.empty(size * count, np.float32)
        comm.all_gather(out, of_rank(rank, count))
        np.testing.assert_array_equal(out, np.concatenate(parts))

        whole = everybody(comm, size * count)
        out = np.empty(count, np.float32)
        comm.reduce_scatter(out, whole[rank])
        np.testing.assert_array_equal(out, sum(whole)[rank * count :][:count])

        out = np.empty(size * count, np.float32)
        comm.all_to_all(out, whole[rank])
        np.testing.assert_array_equal(
            out, np.concatenate([w[rank * count :][:count] for w in whole])
        )

        out = np.empty(size * count, np.float32)
        comm.gather(out if rank == 0 else None, of_rank(rank, count))
        if rank == 0:
            np.testing.assert_array_equal(out, np.concatenate(parts))

        out = np.empty(count, np.float32)
        comm.scatter(out, whole[0] if rank == 0 else None)
        np.testing.assert_array_equal(out, whole[0][rank * count :][:count])


def lists_of_unequal_blocks(comm: pccl.Communicator) -> None:
    rank, size = comm.rank, comm.world_size
    out = [np.empty(10 * r + 1, np.int64) for r in range(size)]
    comm.all_gather(out, np.full(10 * rank + 1, rank))
    for r, block in enumerate(out):
        np.testing.assert_array_equal(block, np.full(10 * r + 1, r))
    out = [np.empty(100 * r + rank, np.int64) for r in range(size)]
    comm.all_to_all(out, [np.full(100 * rank + r, 1000 * rank + r) for r in range(size)])
    for r, block in enumerate(out):
        np.testing.assert_array_equal(block, np.full(100 * r + rank, 1000 * r + rank))


DTYPES = "?bBhHiIlLqQefdFD"


def element_types(comm: pccl.Communicator) -> None:
    for code in DTYPES:
        parts = everybody(comm, 33, code)
        x = of_rank(comm.rank, 33, code)
        comm.all_reduce(x)
        expected = np.any(parts, axis=0) if code == "?" else sum(parts).astype(code)
        np.testing.assert_array_equal(x, expected, err_msg=code)
        out = np.empty((comm.world_size, 33), code)
        comm.all_gather(out, of_rank(comm.rank, 33, code))
        np.testing.assert_array_equal(out, parts, err_msg=code)
    moment = np.array([np.datetime64("2000-01-01") + comm.rank])
    comm.broadcast(moment.view("V8"), root=0)
    assert moment[0] == np.datetime64("2000-01-01")


OPS = {
    "sum": np.add,
    "product": np.multiply,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


def reductions(comm: pccl.Communicator) -> None:
    for op, function in OPS.items():
        x = of_rank(comm.rank, 100, np.int32)
        comm.all_reduce(x, op)  # type: ignore[call-overload]
        expected = function.reduce(everybody(comm, 100, np.int32))
        np.testing.assert_array_equal(x, expected, err_msg=op)
    x = of_rank(comm.rank, 100, np.float64)
    comm.all_reduce(x, op="avg")
    np.testing.assert_allclose(x, sum(everybody(comm, 100, np.float64)) / comm.world_size)


def extremes(comm: pccl.Communicator) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan])
    for code in "efd":
        parts = [np.roll(values, 3 * r).astype(code) for r in range(comm.world_size)]
        for op, function in (("min", np.minimum), ("max", np.maximum)):
            x = parts[comm.rank].copy()
            comm.all_reduce(x, op)  # type: ignore[call-overload]
            np.testing.assert_array_equal(x, function.reduce(parts), err_msg=f"{op} {code}")
            zero = np.array([-0.0 if comm.rank == 0 else 0.0], code)
            comm.all_reduce(zero, op)  # type: ignore[call-overload]
            assert np.signbit(zero[0]) == (op == "min")


def keywords(comm: pccl.Communicator) -> None:
    rank, size, last = comm.rank, comm.world_size, comm.world_size - 1
    parts = everybody(comm, 30)
    x = of_rank(rank, 30)
    comm.all_reduce(op="max", timeout=LIMIT, x=x)
    np.testing.assert_array_equal(x, np.maximum.reduce(parts))
    x = of_rank(rank, 30)
    computed: dict[str, Any] = {"".join(("o", "p")): "min", "x": x}
    comm.all_reduce(**computed)
    np.testing.assert_array_equal(x, np.minimum.reduce(parts))
    x = of_rank(rank, 30)
    comm.broadcast(x, root=last, timeout=int(LIMIT), async_op=True).wait()
    np.testing.assert_array_equal(x, parts[last])
    x = of_rank(rank, 30)
    comm.reduce(x, op="sum", root=last, async_op=False, timeout=None)
    np.testing.assert_array_equal(x, sum(parts) if rank == last else parts[rank])
    out = np.empty(30 * size, np.float32)
    comm.all_gather(x=of_rank(rank, 30), out=out)
    np.testing.assert_array_equal(out, np.concatenate(parts))
    sent = comm.send(tag=3, peer=(rank + 1) % size, x=of_rank(rank, 30), async_op=True)
    comm.recv(peer=(rank - 1) % size, tag=3, x=x)
    sent.wait()
    np.testing.assert_array_equal(x, parts[rank - 1])
    comm.barrier(timeout=LIMIT)


def asynchronous(comm: pccl.Communicator) -> None:
    arrays = [of_rank(comm.rank, 5000) for _ in range(10)]
    events = [comm.all_reduce(x, async_op=True) for x in arrays]
    for event in reversed(events):
        event.flush()
        event.wait()
        assert event.is_done()
        times = event.record()
        assert times["finished"] is not None
        assert times["issued"] <= times["started"] <= times["finished"]
    for x in arrays:
        np.testing.assert_array_equal(x, sum(everybody(comm, 5000)))
    # Nobody waits, and nobody holds the array: it lives until the operation is done.
    comm.all_reduce(of_rank(comm.rank, 100_000), async_op=True)


def messages(comm: pccl.Communicator) -> None:
    right, left = (comm.rank + 1) % comm.world_size, (comm.rank - 1) % comm.world_size
    inbox = np.empty(1000, np.float32)
    sent = comm.send(of_rank(comm.rank, 1000), right, tag=7, async_op=True)
    received = comm.recv(inbox, left, tag=7, async_op=True)
    received.wait()
    sent.wait()
    assert received.source == left
    np.testing.assert_array_equal(inbox, of_rank(left, 1000))
    if comm.rank == 0:
        seen = set()
        for _ in range(comm.world_size - 1):
            word = bytearray(4)
            event = comm.recv(word, tag=9, async_op=True)
            event.wait()
            assert word == f"r{event.source:03}".encode()
            seen.add(event.source)
        assert seen == set(range(1, comm.world_size))
    else:
        comm.send(f"r{comm.rank:03}".encode(), 0, tag=9)


def mistakes(comm: pccl.Communicator) -> None:
    x = np.ones(4, np.float32)
    bad: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (ValueError, "no reduction", lambda: comm.all_reduce(x, "mean")),  # type: ignore[call-overload]
        (ValueError, "root 99", lambda: comm.broadcast(x, 99)),
        (ValueError, "contiguous", lambda: comm.all_reduce(np.ones((4, 4))[:, 1])),
        (ValueError, "writable", lambda: comm.all_reduce(b"1234")),  # type: ignore[call-overload]
        (ValueError, "one type", lambda: comm.all_gather(np.ones(8 * comm.world_size), x)),
        (ValueError, "", lambda: comm.all_gather(np.ones(3, np.float32), x)),
        (NotImplementedError, "", lambda: comm.all_reduce(x, "bxor")),
        (TypeError, "", lambda: comm.all_reduce()),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.all_gather(x=x)),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.all_reduce(x, x=x)),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.broadcast(x, rot=0)),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.broadcast(x, root="0")),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.broadcast(x, root=1 << 40)),
        (TypeError, "", lambda: comm.all_reduce(x, timeout="5")),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.send(x)),  # type: ignore[call-overload]
        (TypeError, "", lambda: comm.barrier(async_op=True)),  # type: ignore[call-arg]
    ]
    for kind, text, call in bad:
        with pytest.raises(kind, match=text):
            call()
    comm.all_reduce(x)
    np.testing.assert_array_equal(x, np.full(4, comm.world_size))


def explanations(comm: pccl.Communicator) -> None:
    for collective in ("all_reduce", "all_gather", "all_to_all"):
        ways = comm.explain(collective, 1 << 20)
        assert sum(way.is_chosen for way in ways) == 1
        assert all(way.seconds >= 0 for way in ways)
        links = [way for way in ways if way.over == "links"]
        assert links == sorted(links, key=lambda way: way.seconds)
        # A larger buffer never takes less time.
        less = {way.algorithm: way.seconds for way in comm.explain(collective, 1 << 10)}
        assert all(less[way.algorithm] <= way.seconds for way in ways)
    with pytest.raises(ValueError, match="'all_send' is no collective"):
        comm.explain("all_send", 1)  # type: ignore[arg-type]


def mismatch(comm: pccl.Communicator) -> str:
    x = np.ones(4 + comm.rank, np.float32)
    with pytest.raises(pccl.Error) as caught:
        comm.all_reduce(x, timeout=20)
    # Whoever sees the other's message first says what differs; the other may only see it leave.
    if isinstance(caught.value, pccl.MismatchError):
        assert caught.value.rank == 1 - comm.rank
        assert "4" in str(caught.value)
        assert "5" in str(caught.value)
    with pytest.raises(pccl.Error):
        comm.all_reduce(x)
    return BROKEN


def groups_from_several_threads(comm: pccl.Communicator) -> None:
    port = np.array([free_port() if comm.rank == 0 else 0, 0], np.int64)
    comm.broadcast(port)
    second = pccl.Communicator(
        rank=comm.rank,
        world_size=comm.world_size,
        rendezvous=f"tcp://127.0.0.1:{port[0]}",
        timeout=LIMIT,
        name="second",
    )
    failures: list[BaseException] = []

    def work(group: pccl.Communicator) -> None:
        try:
            for _ in range(50):
                x = of_rank(group.rank, 2000)
                group.all_reduce(x)
                np.testing.assert_array_equal(x, sum(everybody(group, 2000)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(group,)) for group in (comm, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    comm.barrier()
    second.shutdown()
    second.shutdown()
    with pytest.raises(pccl.AbortedError):
        second.barrier()


def blocks_in_a_message(comm: pccl.Communicator) -> None:
    def most_by(algorithm: str, nbytes: int) -> int:
        ways = comm.explain("all_gather", nbytes)
        return next(way.aggregation for way in ways if way.algorithm == algorithm)

    assert most_by("pat", 1 << 10) == 0  # all: few messages
    assert 1 <= most_by("pat", 1 << 24) < comm.world_size // 2
    assert most_by("ring", 1 << 24) == 0


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "body",
    [
        collectives,
        lists_of_unequal_blocks,
        element_types,
        reductions,
        keywords,
        asynchronous,
        mistakes,
        explanations,
    ],
)
def test_results_equal_numpy(body: Callable[..., Any], size: int) -> None:
    run_ranks(body, size, f"tcp://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("body", [messages, mismatch, groups_from_several_threads])
def test_two_ranks(body: Callable[..., Any]) -> None:
    run_ranks(body, 2, f"tcp://127.0.0.1:{free_port()}")


def test_long_blocks_travel_in_more_messages() -> None:
    run_ranks(blocks_in_a_message, 8, f"tcp://127.0.0.1:{free_port()}")


def test_rendezvous_through_a_file(tmp_path: Path) -> None:
    run_ranks(reductions, 2, f"file://{tmp_path}/rendezvous")


class Dictionary:
    """The least that a rendezvous store may be."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        with self.lock:
            self.values[key] = value

    def get(self, key: str) -> bytes:
        with self.lock:
            return self.values[key]

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            return total


class StoreServer(BaseManager):
    """Shares one Dictionary between processes."""


StoreServer.register("Dictionary", Dictionary)


def test_rendezvous_through_a_python_object() -> None:
    with StoreServer(ctx=multiprocessing.get_context("spawn")) as server:
        run_ranks(reductions, 2, server.Dictionary())  # type: ignore[attr-defined]


def test_a_rank_that_never_comes_is_a_timeout_with_its_name() -> None:
    with pytest.raises(pccl.TimeoutError, match="1"):
        pccl.Communicator(rank=0, world_size=2, rendezvous=Dictionary(), timeout=0.3)


def test_stores_that_wait_for_ever_despite_a_zero_timeout(tmp_path: Path) -> None:
    """Torch's in memory and in files take a timeout of 0 for none."""
    dist = pytest.importorskip("torch.distributed")
    outcomes: list[str] = []

    def wait_in_vain(store: Any) -> None:
        try:
            pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=1.0)
        except pccl.TimeoutError as error:
            outcomes.append(str(error))

    stores = [dist.HashStore(), dist.FileStore(str(tmp_path / "store"), 2)]
    waiting = [threading.Thread(target=wait_in_vain, args=(s,), daemon=True) for s in stores]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(LIMIT)
    assert len(outcomes) == len(stores)
    assert all("rank 1" in outcome for outcome in outcomes), outcomes


@pytest.mark.parametrize("url", ["tcp://nowhere", "http://127.0.0.1:1", "file://", ""])
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        pccl.Communicator(rank=0, world_size=2, rendezvous=url, timeout=1)


def test_a_gpu_is_named_by_its_bus_id() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="gpu foo is no bus id: write it as 0000:"):
        pccl.Communicator(gpu="foo")
    pccl.Communicator(gpu="0D:00.0").shutdown()


@pytest.mark.parametrize("wanted", ["shm_direct", "all_send=ring", "all_gather=ring,all_reduce="])
def test_a_list_of_algorithms_that_cannot_be_read_is_refused(wanted: str) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=r"name algorithms as in all_reduce="):
        pccl.Communicator(algorithm=wanted)


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "shm_one_shot"])
def test_extremes_of_zeros_and_nans_are_those_of_numpy(algorithm: str) -> None:
    rendezvous = f"tcp://127.0.0.1:{free_port()}"
    run_ranks(extremes, 3, rendezvous, PCCL_ALGORITHM=f"all_reduce={algorithm}")


FOREIGN = {
    "object": (np.array([{}], dtype=object), r"dtype object.* holds pointers.*pickle\.dumps"),
    "a view of it": (memoryview(np.array([{}], dtype=object)), r"format O.* holds pointers"),
    "structured": (
        np.zeros(2, "f4,i4"),
        r"dtype \[\('f0', '<f4'\), .* has fields.*x\.view\('u1'\)",
    ),
    "swapped": (np.zeros(2, ">f4"), r"dtype >f4.* byte order; send x\.astype"),
    "datetime": (np.zeros(2, "M8[s]"), r"dtype datetime64\[s\].* dtype 'M'.*x\.view\('i8'\)"),
    "timedelta": (np.zeros(2, "m8[s]"), r"dtype timedelta64\[s\].* dtype 'm'.*x\.view\('i8'\)"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_elements_that_mean_nothing_elsewhere_are_refused_with_their_type(name: str) -> None:
    array, pattern = FOREIGN[name]
    with pytest.raises(pccl.InvalidArgumentError, match=pattern) as caught:
        pccl.Communicator().broadcast(array)
    assert "\n" not in str(caught.value)


def foreign_elements(comm: pccl.Communicator) -> None:
    mine = np.array([{}], dtype=object)
    for call in (comm.broadcast, comm.all_reduce, lambda x: comm.send(x, peer=1 - comm.rank)):
        with pytest.raises(pccl.InvalidArgumentError, match="dtype object"):
            call(mine)
    assert mine[0] == {}
    x = np.full(4, comm.rank, np.longdouble)
    with pytest.raises(
        pccl.UnsupportedError, match=r"\(longdouble\) can be moved, and not reduced"
    ):
        comm.all_reduce(x)
    comm.broadcast(x, root=1)
    assert x.tolist() == [1, 1, 1, 1]


def test_a_refused_view_that_is_longer_than_memory_is_named() -> None:
    view = np.broadcast_to(np.float32(1), (1 << 55,))
    with pytest.raises(pccl.InvalidArgumentError, match="expected a C-contiguous writable buffer"):
        pccl.Communicator().all_reduce(view)


NO_DESCRIPTORS = """
import os, resource, sys
import pccl
pccl.Communicator()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    pccl.Communicator(rank=0, world_size=2, rendezvous=f"file://{sys.argv[1]}", timeout=2)
except pccl.Error as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_a_lack_of_descriptors_is_no_wrong_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_DESCRIPTORS, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert done.stdout.startswith("ResourceExhaustedError: cannot open the store ")


def test_no_rank_gets_pointers_of_another() -> None:
    run_ranks(foreign_elements, 2, f"tcp://127.0.0.1:{free_port()}")


def test_ctrl_c_ends_a_wait() -> None:
    # A shell's background jobs are born deaf to it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    comm = pccl.Communicator(timeout=LIMIT)
    event = comm.recv(bytearray(1), 0, async_op=True)
    start = time.monotonic()
    interrupt = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        event.wait()
    assert time.monotonic() - start < LIMIT
    with pytest.raises(pccl.TimeoutError):
        event.wait(timeout=0.01)
    comm.abort("enough")
    with pytest.raises(pccl.AbortedError, match="enough"):
        event.wait()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", ["all_reduce", "broadcast", "barrier"])
def test_quick_methods_have_signatures(name: str) -> None:
    method = getattr(pccl.Communicator, name)
    assert method.__text_signature__.startswith(("($self", "(self"))
    assert next(iter(inspect.signature(method).parameters)) == "self"

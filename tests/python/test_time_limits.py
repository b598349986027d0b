# SPDX-License-Identifier: Apache-2.0
"""Every public argument that is a time: infinity, what is too large, negatives and NaN."""

from __future__ import annotations

import ast
import datetime
import functools
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl import p2p, phase_costs, simulator
from pccl._internal import time_limits
from pccl.diagnostics import job_status
from support.stubs import read_stub
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[pccl.Communicator, float], object]
    P2pCall = Callable[["Pair", float], object]

ARGUMENTS = {"timeout", "timeout_s", "connect_timeout", "interval", "lease"}
NO_LIMIT = (math.inf, 1e300, 1e16, 10**400)
WRONG = (math.nan, -1.0, -math.inf)
LATE_S = 0.3  # long after a wait that is over at once


def ones() -> np.ndarray:
    return np.ones(4)


def two() -> np.ndarray:
    return np.ones((2, 4))


def send_or_receive(comm: pccl.Communicator, timeout: float) -> None:
    if comm.rank == 0:
        comm.send(ones(), 1, timeout=timeout)
    else:
        comm.recv(ones(), 0, timeout=timeout)


def send_or_receive_object(comm: pccl.Communicator, timeout: float) -> None:
    if comm.rank == 0:
        comm.send_object("x", 1, timeout=timeout)
    else:
        comm.recv_object(0, timeout=timeout)


def load_and_unload(comm: pccl.Communicator, timeout: float) -> None:
    capsule = pccl.Capsule.of(pccl.schedule.generate("ring", "all_reduce", 2).renamed("ring2"))
    comm.load(capsule, timeout=timeout)
    comm.unload("ring2", timeout=timeout)


def run_operator(comm: pccl.Communicator, timeout: float) -> None:
    comm.operator("all_reduce", ones()).run(timeout=timeout)


def execute_operator(comm: pccl.Communicator, timeout: float) -> None:
    comm.operator("all_reduce", ones()).execute(timeout=timeout).wait()


def allocate(comm: pccl.Communicator, timeout: float) -> None:
    comm.memory.allocate("space", 64, timeout=timeout).release()


# By whom they are reached: of two ranks, each of which calls it, rank 1 late.
OF_RANKS: dict[str, Call] = {
    "Communicator.all_reduce": lambda comm, t: comm.all_reduce(ones(), timeout=t),
    "Communicator.broadcast": lambda comm, t: comm.broadcast(ones(), timeout=t),
    "Communicator.reduce": lambda comm, t: comm.reduce(ones(), timeout=t),
    "Communicator.all_gather": lambda comm, t: comm.all_gather(two(), ones(), timeout=t),
    "Communicator.reduce_scatter": lambda comm, t: comm.reduce_scatter(ones(), two(), timeout=t),
    "Communicator.gather": lambda comm, t: comm.gather(two(), ones(), timeout=t),
    "Communicator.scatter": lambda comm, t: comm.scatter(ones(), two(), timeout=t),
    "Communicator.all_to_all": lambda comm, t: comm.all_to_all(two(), two(), timeout=t),
    "Communicator.send": send_or_receive,
    "Communicator.recv": send_or_receive,
    "Communicator.send_object": send_or_receive_object,
    "Communicator.recv_object": send_or_receive_object,
    "Communicator.broadcast_object": lambda comm, t: comm.broadcast_object("x", timeout=t),
    "Communicator.barrier": lambda comm, t: comm.barrier(timeout=t),
    "Communicator.monitored_barrier": lambda comm, t: comm.monitored_barrier(t),
    "Communicator.health": lambda comm, t: comm.health(timeout=t),
    "Communicator.split": lambda comm, t: comm.split(0, timeout=t),
    "Communicator.load": load_and_unload,
    "Communicator.unload": load_and_unload,
    "Event.wait": lambda comm, t: comm.all_reduce(ones(), async_op=True).wait(timeout=t),
    "Memory.allocate": allocate,
    "Operator.run": run_operator,
    "Operator.execute": execute_operator,
}


class Pair:
    """Two sessions that are connected, and a memory of each."""

    def __init__(self) -> None:
        self.a = p2p.Session("a", transports="shm")
        self.b = p2p.Session("b", transports="shm")
        self.mine, self.theirs = (
            each.register(np.zeros(64, np.uint8)) for each in (self.a, self.b)
        )
        self.a.load(self.b.connection_info())
        self.b.publish("cache", self.theirs)
        self.a.connect("b")
        self.transfer = self.a.transfer("b")


def accepted(pair: Pair, timeout: float) -> None:
    with p2p.Session("c", transports="shm") as caller:
        caller.load(pair.b.connection_info())
        thread = threading.Thread(target=functools.partial(caller.connect, "b"))
        thread.start()
        try:
            assert pair.b.accept("c", timeout) == "c"
        finally:
            thread.join()


def message(pair: Pair, timeout: float) -> None:
    sent = pair.transfer.post_send(pair.mine, 0, 8, timeout=timeout)
    received = pair.b.transfer("a").post_recv(pair.theirs, 0, 8, timeout=timeout)
    for each in (sent, received):
        each.wait(timeout)


def transferred(pair: Pair, timeout: float) -> None:
    theirs = pair.a.fetch("b", "cache", timeout)
    pair.transfer.post_read(pair.mine, theirs, timeout=timeout)
    pair.transfer.post_write(pair.mine, theirs, timeout=timeout)
    pair.transfer.wait(timeout)


def found(pair: Pair, timeout: float) -> None:
    store = DictStore()
    p2p.Directory(pair.b, store).publish(cache=pair.theirs)
    p2p.Directory(pair.a, store).find("b", timeout)


class DictStore:
    """What a directory asks for."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        self._values[key] = value

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def keys(self) -> list[str]:
        return sorted(self._values)


OF_SESSIONS: dict[str, P2pCall] = {
    "Session.__init__": lambda _, t: p2p.Session("x", connect_timeout=t).close(),
    "Session.connect": lambda pair, t: pair.a.connect("b", t),
    "Session.accept": accepted,
    "Session.fetch": lambda pair, t: pair.a.fetch("b", "cache", t),
    "Session.notifications": lambda pair, t: (pair.b.notify("a", b"x"), pair.a.notifications(t)),
    "Message.wait": message,
    "Transfer.post_send": message,
    "Transfer.post_recv": message,
    "Transfer.post_read": transferred,
    "Transfer.post_write": transferred,
    "Transfer.wait": transferred,
    "Work.wait": lambda pair, t: pair.a.read(pair.mine[0:8], pair.a.fetch("b", "cache")[0:8]).wait(
        t
    ),
    "Directory.find": found,
}

PLAN = {
    "devices": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}],
    "phases": {"ring": {"links": "ring"}, "pairs": {"links": [[0, 2], [1, 3]], "duplex": True}},
}


def cluster() -> pccl.Cluster:
    made = pccl.Cluster(PLAN)
    made.switch("ring")
    return made


def rendezvous_store(timeout: float) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        p2p.RendezvousStore(f"file://{folder}/store", host=True, timeout=timeout)


ALONE: dict[str, Callable[[float], object]] = {
    "Communicator.__init__": lambda t: pccl.Communicator(rank=0, world_size=1, timeout=t),
    "run": lambda t: pccl.run(len_of_group, ranks=1, timeout=t),
    "Cluster.switch": lambda t: cluster().switch("pairs", timeout=t),
    "Cluster.show": lambda t: cluster().show(timeout=t),
    "Cluster.phase_shown": lambda t: cluster().phase_shown(timeout=t),
    "Cluster.adopt": lambda t: cluster().adopt(timeout=t),
    "Cluster.watch": lambda t: next(iter(cluster().watch("ring", timeout=t))),
    "Cluster.measure": lambda t: cluster().measure("ring", "pairs", rounds=1, timeout=t),
    "RendezvousStore.__init__": rendezvous_store,
    "EtcdStore.__init__": lambda t: p2p.EtcdStore("http://127.0.0.1:1", timeout=t),
}

# What the callers above go through, or the command line; and GPUs, which few machines have.
BEHIND = {
    *("meeting_point", "watch", "measure", "send", "receive", "broadcast", "request_status"),
    *("request_history", "query_ledger", "RepeatedQuery.__init__"),  # pccl why
    *("PhaseNetwork.switch_phase", "Controller.switch_phase", "Controller.inspect"),
    *("Controller.adopt", "DeviceGroup.__init__", "limit_of_timedelta"),
    *("EtcdGateway.put", "EtcdGateway.put_if", "EtcdGateway.renew", "EtcdGateway.revoke"),
    *("held_by", "ask"),
    *("published_store", "call_within", "make_backend"),
    "ProcessGroupPCCL.set_timeout",  # of pccl.torchft, which passes it on
    *("examine", "listen", "connect"),  # pccl doctor --rdma: tests/python/test_rdma_doctor.py
    "meet",  # pccl doctor in a job: tests/python/test_doctor_job.py
}
# Tried below, or in tests of several processes (test_time_limits.py of tests/multiproc).
ELSEWHERE = {
    *("query_job", "switch_phase", "phase", "SwitchedOperator.run", "monitored_barrier", "health"),
    *("ProcessGroupPCCL.__init__", "ProcessGroupPCCL.health", "ProcessGroupPCCL.monitored_barrier"),
}


def len_of_group(comm: pccl.Communicator) -> int:
    return comm.world_size


def entries() -> Iterator[str]:
    """Yield all functions of the package with such an argument, but for those of commands."""
    root = Path(pccl.__file__).resolve().parent

    def named(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from named(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                arguments = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
                is_public = not node.name.startswith("_") or node.name == "__init__"
                if is_public and arguments & ARGUMENTS:
                    yield prefix + node.name

    for file in (*root.rglob("*.py"), *root.glob("*.pyi")):
        if file.parent.name not in {"cli", "bench"}:
            yield from named(ast.parse(file.read_text()).body, "")
    yield from named(read_stub(root / "_core").body, "")


def test_every_argument_that_is_a_time_is_tried() -> None:
    assert set(entries()) == {*OF_RANKS, *OF_SESSIONS, *ALONE, *BEHIND, *ELSEWHERE}


@pytest.mark.parametrize("call", OF_RANKS.values(), ids=OF_RANKS)
def test_ranks_wait_without_limit(call: Call, tmp_path: Path) -> None:
    def be_rank(comm: pccl.Communicator) -> None:
        for timeout in NO_LIMIT:
            time.sleep(LATE_S * comm.rank if timeout == math.inf else 0)
            call(comm, timeout)

    run_threads(tmp_path, 2, be_rank)


@pytest.mark.parametrize("call", OF_RANKS.values(), ids=OF_RANKS)
def test_ranks_refuse_what_is_no_time(call: Call, tmp_path: Path) -> None:
    def be_rank(comm: pccl.Communicator) -> None:
        for timeout in WRONG:
            with pytest.raises(pccl.InvalidArgumentError, match=r"^timeout is .*inf"):
                call(comm, timeout)
            comm.barrier()

    run_threads(tmp_path, 2, be_rank)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


@pytest.mark.parametrize("call", OF_SESSIONS.values(), ids=OF_SESSIONS)
def test_sessions_wait_without_limit(call: P2pCall, pair: Pair) -> None:
    for timeout in NO_LIMIT:
        call(pair, timeout)


@pytest.mark.parametrize("call", OF_SESSIONS.values(), ids=OF_SESSIONS)
def test_sessions_refuse_what_is_no_time(call: P2pCall, pair: Pair) -> None:
    for timeout in WRONG:
        with pytest.raises(pccl.InvalidArgumentError, match="timeout is "):
            call(pair, timeout)


@pytest.mark.parametrize("call", ALONE.values(), ids=ALONE)
def test_others_wait_without_limit(call: Callable[[float], object]) -> None:
    for timeout in NO_LIMIT:
        call(timeout)


@pytest.mark.parametrize("call", ALONE.values(), ids=ALONE)
def test_others_refuse_what_is_no_time(call: Callable[[float], object]) -> None:
    for timeout in WRONG:
        with pytest.raises(pccl.InvalidArgumentError, match="timeout"):
            call(timeout)


def test_an_int_below_all_floats_is_no_time() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=r"^timeout is -inf: "):
        pccl.Communicator(timeout=-(10**400))
    with pytest.raises(pccl.InvalidArgumentError, match=r"^timeout is -inf: "):
        time_limits.limit_of(-(10**400))


@pytest.mark.parametrize("timeout", [math.inf, 1e300])
def test_a_group_without_limit_comes_about(timeout: float, tmp_path: Path) -> None:
    def be_rank(rank: int) -> int:
        time.sleep(LATE_S * rank)
        store = f"file://{tmp_path}/store"
        comm = pccl.Communicator(rank=rank, world_size=2, rendezvous=store, timeout=timeout)
        time.sleep(LATE_S * rank)
        comm.barrier()
        return comm.world_size

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(be_rank, range(2), timeout=60)) == [2, 2]


@pytest.mark.parametrize("wrong", [*WRONG, 0.0])
def test_intervals_and_groups_must_be_above_zero(wrong: float) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="interval is "):
        next(cluster().watch("ring", interval=wrong))
    with pytest.raises(pccl.InvalidArgumentError, match="timeout is "):
        pccl.Communicator(rank=0, world_size=1, timeout=wrong)
    with pytest.raises(pccl.InvalidArgumentError, match="lease is "):
        p2p.EtcdStore("http://127.0.0.1:1", lease=wrong)
    with pytest.raises(pccl.InvalidArgumentError, match="lease is "):
        p2p.EtcdStore("http://127.0.0.1:1", lease=math.inf)


def test_a_question_about_the_status_refuses_what_is_no_time() -> None:
    for wrong in WRONG:
        with pytest.raises(pccl.InvalidArgumentError, match="timeout_s is "):
            job_status.query_job([("/nowhere",)], wrong)


def test_timedeltas_fit_into_microseconds() -> None:
    longest = time_limits.limit_of_timedelta(datetime.timedelta.max)
    assert longest < datetime.timedelta(microseconds=2**63)
    assert time_limits.limit_of_timedelta(datetime.timedelta(1)) == datetime.timedelta(1)


@pytest.mark.parametrize("wrong", [*WRONG, math.inf])
@pytest.mark.parametrize("argument", ["bandwidth", "start", "hop"])
def test_speeds_are_finite_numbers(argument: str, wrong: float) -> None:
    right = {"bandwidth": 1e9, "start": 0.0, "hop": 0.0}
    simulator.Speed(**right)
    with pytest.raises(ValueError, match=f"^{argument} is "):
        simulator.Speed(**{**right, argument: wrong})


@pytest.mark.parametrize("wrong", [*WRONG, math.inf])
def test_models_of_switched_circuits_take_finite_numbers(wrong: float) -> None:
    on = phase_costs.Circuits(ranks=4, bandwidth=1e9)
    for argument in ("bandwidth", "alpha", "delta"):
        values: dict[str, Any] = {"ranks": 4, "bandwidth": 1e9, argument: wrong}
        with pytest.raises(ValueError, match=f"^{argument} is "):
            phase_costs.Circuits(**values)
    with pytest.raises(ValueError, match=r"^reconfiguration is "):
        phase_costs.halving_doubling_switched(on, 1e6, wrong)
    with pytest.raises(ValueError, match=r"^reconfiguration is "):
        pccl.phase_costs.advise(
            [pccl.phase_costs.Operation("all_reduce", 1 << 20)], on, reconfiguration=wrong
        )
    network = simulator.Network.switch(4, simulator.Speed(bandwidth=1e9))
    with pytest.raises(ValueError, match=r"^nbytes is "):
        simulator.rounds("ring", "all_reduce", network, wrong)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""Groups that lose ranks at bad moments, or fall apart: at most one side goes on, and all of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from faults import network
from support import fake_verbs
from support.launch import die_with_parent, new_store, not_on_gloo, run_ranks
from support.stopped import await_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such thing")]

PATIENCE = {"PCCL_PEER_TIMEOUT_MS": "1000"}
DIED = 7


def total(group: dist.ProcessGroup | None = None) -> float:
    x = torch.ones(3)
    dist.all_reduce(x, group=group)
    return float(x[0])


def join(store: dist.Store, rank: int, ranks: int) -> None:
    timeout = timedelta(seconds=30)
    dist.init_process_group("pccl", store=store, rank=rank, world_size=ranks, timeout=timeout)
    assert total() == ranks


def await_loss() -> None:
    """Run operations until one finds that somebody is lost."""
    import pccl

    try:
        while True:
            total()
    except (pccl.PeerLostError, pccl.UnavailableError, pccl.TimeoutError):
        return


def _be_rank(part: str, rank: int, ranks: int, port: int, results: Any) -> None:
    die_with_parent()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    results.put((rank, globals()[part](rank, ranks, store)))


def run_job(_rank: int, _world_size: int, part: str, ranks: int) -> dict[int, Any]:
    """Run as a rank of a job of one: forks those of another job, which may die without a word."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    port = new_store().port
    processes = [
        context.Process(target=_be_rank, args=(part, rank, ranks, port, results))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    assert set(codes) <= {0, DIED}, codes
    return dict(results.get() for _ in range(codes.count(0)))


def results_of(part: Any, ranks: int, **environment: str) -> dict[int, Any]:
    """Return what ``part`` finds, by rank, of those that do not die."""
    arguments = (part.__name__, ranks)
    options = {**PATIENCE, **environment}
    [found] = run_ranks(run_job, 1, backend=None, arguments=arguments, environment=options)
    return found


def comes_late(rank: int, ranks: int, store: dist.Store) -> float:
    join(store, rank, ranks)
    if rank == 3:
        os._exit(DIED)
    await_loss()
    if rank == 2:
        time.sleep(2)
    import pccl

    pccl.shrink()
    return total()


def dies_while_it_shrinks(rank: int, ranks: int, store: dist.Store) -> float:
    """Rank 1 says that it goes on, and is gone before rank 2 comes."""
    import pccl

    join(store, rank, ranks)
    if rank == 3:
        os._exit(DIED)
    await_loss()
    if rank == 1:
        threading.Timer(1, os._exit, (DIED,)).start()
    if rank == 2:
        time.sleep(2)
    pccl.shrink()
    return total()


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_late_rank_is_waited_for(transports: str) -> None:
    found = results_of(comes_late, 4, PCCL_TRANSPORTS=transports)
    assert found == {0: 3.0, 1: 3.0, 2: 3.0}


@pytest.mark.parametrize("transports", ["", "tcp", "verbs"])
def test_one_that_dies_while_it_shrinks_is_left_out_by_all(tmp_path: Path, transports: str) -> None:
    environment = fake_verbs.ranks_over(transports, tmp_path)
    found = results_of(dies_while_it_shrinks, 4, **environment)
    assert found == {0: 2.0, 2: 2.0}


def is_stopped_and_comes_back(rank: int, world_size: int) -> Any:
    import pccl

    store = new_store()
    total()
    if rank == 2:
        store.set("stopped", str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
        with pytest.raises(pccl.UnavailableError) as caught:
            pccl.shrink()
        store.set("back", "")
        return str(caught.value)
    stopped = int(store.get("stopped"))
    await_stopped(stopped)
    try:
        pccl.shrink()
        found = total()
    finally:
        if rank == 0:
            os.kill(stopped, signal.SIGCONT)
    store.wait(["back"])
    return found


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_rank_that_was_silent_for_too_long_learns_that_the_others_have_gone_on(
    transports: str,
) -> None:
    environment = {**PATIENCE, "PCCL_TRANSPORTS": transports}
    *gone_on, left_out = run_ranks(is_stopped_and_comes_back, 3, environment=environment)
    assert gone_on == [2.0, 2.0]
    assert "rank 0 has gone on without this one, in a group of 2 that leaves out rank 2" in left_out


@dataclass(frozen=True)
class Scene:
    """Where ranks are, and how the two hosts are parted."""

    hosts: tuple[str, str]
    of_rank: str
    is_pulled: bool
    file: str  # torch connects to a store again, which hosts that are parted cannot


def falls_apart(rank: int, world_size: int, scene: Scene) -> Any:
    """Return what a rank finds whose host is cut off from the other."""
    import pccl

    network.enter(scene.hosts["ab".index(scene.of_rank[rank])])
    join(dist.FileStore(scene.file, world_size), rank, world_size)
    dist.barrier()
    if rank == 0:
        if scene.is_pulled:
            network.pull_link(scene.hosts[1])
        else:
            network.part(*scene.hosts)
    await_loss()
    try:
        pccl.shrink()
        return total()
    except pccl.Error as error:
        return type(error).__name__, str(error)


def outcomes(folder: Path, of_rank: str, *, is_pulled: bool = False) -> list[Any]:
    reason = network.why_no_namespaces()
    if reason:
        pytest.skip(reason)
    with network.joined_namespaces() as hosts:
        return run_ranks(
            falls_apart,
            len(of_rank),
            backend=None,
            arguments=(Scene(hosts, of_rank, is_pulled, str(folder / "store")),),
            environment={**PATIENCE, "PCCL_TRANSPORTS": "tcp"},
        )


@pytest.mark.parametrize(
    ("of_rank", "goes_on"), [("aabb", "a"), ("abb", "b"), ("aab", "a"), ("abba", "a")]
)
def test_one_side_of_a_group_that_falls_apart_goes_on(
    tmp_path: Path, of_rank: str, goes_on: str
) -> None:
    for rank, found in enumerate(outcomes(tmp_path, of_rank)):
        if of_rank[rank] == goes_on:
            assert found == of_rank.count(goes_on)
        else:
            kind, message = found
            assert kind == "UnavailableError", message
            assert "the others may go on" in message


def test_a_host_whose_link_is_pulled_does_not_go_on_by_itself(tmp_path: Path) -> None:
    *others, (kind, message) = outcomes(tmp_path, "aab", is_pulled=True)
    assert others == [2.0, 2.0]
    assert kind == "UnavailableError", message


def requests_fewer(rank: int, world_size: int) -> float | None:
    import pccl

    total()
    if rank == 0:
        return None
    await_loss()
    with pytest.raises(pccl.UnavailableError, match=r"half of them, without rank 0.* least=1"):
        pccl.shrink()
    with pytest.raises(pccl.UnavailableError, match="at least 2 are required; rank 0 is missing"):
        pccl.shrink(least=2)
    with pytest.raises(pccl.UnavailableError, match="rank 0"):
        dist.distributed_c10d.shrink_group([0])
    options = pccl.Options(least=1)
    dist.distributed_c10d.shrink_group([0], pg_options=options)
    return total()


def test_the_last_rank_goes_on_with_least_1() -> None:
    assert run_ranks(requests_fewer, 2) == [None, 1.0]


def requests_fewer_over_numpy(rank: int, world_size: int) -> int | None:
    import pccl

    comm = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=new_store(), timeout=20.0)
    comm.all_reduce(np.ones(3))
    if rank == 0:
        comm.shutdown()
        return None
    while comm.health(timeout=20.0)[0].state == "here":
        time.sleep(0.01)
    with pytest.raises(pccl.UnavailableError, match="least=1"):
        comm.shrink()
    with pytest.raises(pccl.InvalidArgumentError, match="least=3 of a group of 2"):
        comm.shrink([0], least=3)
    return comm.shrink(least=1).world_size


def wrong_shrink(rank: int, world_size: int) -> list[float]:
    import pccl

    comm = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=new_store(), timeout=20.0)
    for excluded, least in ([rank], None), ([world_size], None), ([-1], 1), ([1 - rank], 2):
        with pytest.raises(pccl.Error, match="cannot be shrunk"):
            comm.shrink(excluded, least=least)
    with pytest.raises(pccl.UnavailableError, match="at least 2 are required"):
        pccl.shrink(None, [1 - rank], least=2)
    x = np.ones(3)
    comm.all_reduce(x)
    return [float(x[0]), total()]


def test_a_refused_shrink_leaves_the_group_usable() -> None:
    assert run_ranks(wrong_shrink, 2) == [[2.0, 2.0]] * 2


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    held = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def shrinks_without_descriptors(rank: int, world_size: int) -> None:
    import pccl

    store = new_store()
    comm = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=store, timeout=20.0)
    comm.barrier()
    if rank == 0:
        with no_descriptors(), pytest.raises(pccl.ResourceExhaustedError, match="Too many open"):
            comm.shrink()
        store.set("shortage", "over")
    # A rank that waits in a collective queries rank 0, which then lends its spare descriptor.
    store.wait(["shortage"])
    comm.barrier()


def test_a_rank_without_descriptors_excludes_nobody() -> None:
    run_ranks(shrinks_without_descriptors, 2, environment=PATIENCE)


def loses_the_rank_with_the_store(rank: int, ranks: int, store: dist.Store) -> float:
    """Rank 0 holds the store, as it does with init_method="tcp://..."."""
    import pccl

    if rank == 0:
        own = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        store.set("port", str(own.port))
    else:
        own = dist.TCPStore("127.0.0.1", int(store.get("port")), is_master=False)
    join(own, rank, ranks)
    if rank == 0:
        os._exit(DIED)
    await_loss()
    pccl.shrink()
    return total()


def test_a_group_without_its_store_is_shrunk() -> None:
    assert results_of(loses_the_rank_with_the_store, 3) == {1: 2.0, 2: 2.0}


def test_the_last_one_goes_on_over_numpy_too() -> None:
    assert run_ranks(requests_fewer_over_numpy, 2, backend=None) == [None, 1]


def interrupt_survey_of_stopped_ranks(rank: int, size: int, folder: str) -> None:
    import pccl

    comm = pccl.Communicator(
        rank=rank, world_size=size, rendezvous=f"file://{folder}/store", timeout=60.0
    )
    comm.barrier()
    (Path(folder) / f"pid-{rank}").write_text(str(os.getpid()))
    done = Path(folder) / "done"
    if rank > 0:
        while not done.exists():
            time.sleep(0.01)
        return
    others = []
    for other in range(1, size):
        file = Path(folder) / f"pid-{other}"
        while not file.exists() or not file.read_text():
            time.sleep(0.01)
        others.append(int(file.read_text()))
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
        await_stopped(pid)
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            comm.health(300.0)
        # Each takes the whole time, beside the others.
        assert [peer.state for peer in comm.health(1.0)] == ["here", *["silent"] * (size - 1)]
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        done.touch()


def test_ctrl_c_ends_a_survey_of_stopped_ranks(tmp_path: Path) -> None:
    run_ranks(interrupt_survey_of_stopped_ranks, 3, arguments=(str(tmp_path),), backend=None)

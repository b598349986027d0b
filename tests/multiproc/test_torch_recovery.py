# SPDX-License-Identifier: Apache-2.0
"""What is known of a failure, and how a job goes on after it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from support.background import threads_of_pccl
from support.launch import new_store, not_on_gloo, run_ranks
from support.stopped import await_stopped

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such thing")]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 120


def meet(key: str, ranks: list[int]) -> None:
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{key}/{dist.get_rank()}", "")
    store.wait([f"{key}/{rank}" for rank in ranks])


def errors_are_of_both_families(rank: int, world_size: int) -> None:
    import pickle

    import pccl

    with pytest.raises(pccl.MismatchError) as caught:
        dist.all_reduce(torch.ones(3 + (rank == 0)))
    assert isinstance(caught.value, dist.DistBackendError)
    assert caught.value.rank != rank
    assert f"rank {caught.value.rank}" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(caught.value, type(again))
    assert isinstance(again, pccl.MismatchError)
    assert (again.rank, str(again)) == (caught.value.rank, str(caught.value))
    meet("mismatch", list(range(world_size)))


def health_has_the_place_of_each_rank(rank: int, world_size: int) -> None:
    import pccl

    last = world_size - 1
    dist.barrier()
    if rank == last:
        meet("asked", list(range(world_size)))
        dist.barrier()
        return
    waiting = threading.Thread(target=dist.barrier)
    waiting.start()
    deadline = time.monotonic() + 20
    want = [(last,)] * last + [()]  # once the others no longer wait for each other
    found = pccl.health()
    while [peer.waits_for for peer in found] != want:
        assert time.monotonic() < deadline
        found = pccl.health()
    for peer in found:
        assert peer.state == "here"
        assert peer.last_sign_s == 0.0
        assert peer.sequence == (1 if peer.rank == last else 2)
        assert bool(peer.operation) == (peer.rank != last)
    meet("asked", list(range(world_size)))
    waiting.join()


def ctrl_c_ends_a_synchronous_collective(rank: int, world_size: int) -> None:
    import pccl

    dist.barrier()
    if rank == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            dist.all_reduce(torch.ones(3))
        meet("interrupted", list(range(world_size)))
        return
    meet("interrupted", list(range(world_size)))

    def reduce_twice() -> None:  # rank 0 had given its part of the first
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3))

    with pytest.raises(pccl.PeerLostError, match="rank 0") as caught:
        reduce_twice()
    assert caught.value.rank == 0


def the_record_has_what_ran(rank: int, world_size: int) -> None:
    import pccl

    dist.all_reduce(torch.ones(3))
    dist.broadcast(torch.ones(5), 0, async_op=True).wait()
    if rank == 0:
        dist.send(torch.ones(2), 1, tag=7)
    elif rank == 1:
        dist.recv(torch.ones(2), 0, tag=7)
    record = pccl.diagnostics.flight_record()
    entries = [entry for entry in record["entries"] if entry["group"] == record["groups"][-1]["id"]]
    assert [entry["state"] for entry in entries] == ["completed"] * len(entries)
    assert entries[0]["operation"].startswith("all_reduce #1 (sum of 3 float32")
    assert entries[1]["operation"].startswith("broadcast #2 (5 float32")
    assert entries[0]["issued_ns"] <= entries[0]["finished_ns"] <= entries[1]["issued_ns"]
    if rank < 2:
        assert "(tag 7, 8 bytes)" in entries[2]["operation"]
    for _ in range(3000):
        dist.barrier()
    entries = pccl.diagnostics.flight_record()["entries"]
    assert len(entries) >= 2000
    assert entries[-1]["sequence"] == 3002


def a_hang_is_recorded(rank: int, world_size: int) -> None:
    for _ in range(3):
        dist.all_reduce(torch.ones(3))
    options = dist.AllreduceOptions()
    options.timeout = timedelta(seconds=3)  # which ranks 0 and 2 must come in
    if rank != 1:
        with pytest.raises(RuntimeError, match="rank 1"):
            dist.group.WORLD.allreduce([torch.ones(4)], options).wait()
    meet("timed out", list(range(world_size)))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGUSR1)
        folder = Path(os.environ["PCCL_FLIGHT_DIR"])
        deadline = time.monotonic() + 20
        while len(list(folder.glob("*.json"))) < world_size and time.monotonic() < deadline:
            time.sleep(0.01)


def belongings() -> tuple[int, set[str], int]:
    """Count descriptors and mappings of the library, and name its threads."""
    threads = set(threads_of_pccl())
    maps = Path("/proc/self/maps").read_text().count("/memfd:pccl")
    return len(list(Path("/proc/self/fd").iterdir())), threads, maps


def groups_come_and_go(rank: int, world_size: int) -> None:
    """What leaks in a thousand groups shows in some."""
    dist.barrier()
    before = belongings()
    for _ in range(60):
        group = dist.new_group()
        dist.all_reduce(torch.ones(1000), group=group, async_op=True).wait()
        dist.destroy_process_group(group)
        del group
    deadline = time.monotonic() + 20  # peers may still be closing theirs
    while belongings()[0] > before[0] or belongings()[2] > before[2]:
        assert time.monotonic() < deadline, (before, belongings())
        time.sleep(0.01)
    assert len(belongings()[1]) <= 2
    meet("groups", list(range(world_size)))


CHECKS = [
    groups_come_and_go,
    errors_are_of_both_families,
    health_has_the_place_of_each_rank,
    ctrl_c_ends_a_synchronous_collective,
    the_record_has_what_ran,
]


@pytest.mark.parametrize("transports", ["", "tcp"])
@pytest.mark.parametrize("check", CHECKS)
def test_recovery(check: Callable[[int, int], None], transports: str) -> None:
    run_ranks(check, 3, timeout_s=PATIENCE_S, environment={"PCCL_TRANSPORTS": transports})


def test_debug_names_the_rank_that_is_behind(tmp_path: Path) -> None:
    run_ranks(
        a_hang_is_recorded,
        3,
        timeout_s=PATIENCE_S,
        environment={"PCCL_FLIGHT_DIR": str(tmp_path)},
    )
    files = sorted(map(str, tmp_path.glob("*.json")))
    assert len(files) == 3
    command = [sys.executable, "-m", "pccl", "debug", *files]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    words = " ".join(text.split())
    assert "ranks 0, 2 are in all_reduce #4 (sum of 4 float32" in words
    assert "rank 1 has not called it: its last is all_reduce #3" in words
    assert "blame rank 1" in words


def test_training_goes_on_with_three_of_four_ranks(tmp_path: Path) -> None:
    out = tmp_path / "losses.json"
    example = ROOT / "examples" / "train_through_failure.py"
    command = [
        sys.executable,
        str(example),
        "--steps",
        "30",
        "--fails-at",
        "10",
        "--json",
        str(out),
    ]
    subprocess.run(command, check=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found = json.loads(out.read_text())
    assert found["ranks"] == 3
    assert found["losses"][-1] < found["losses"][10] < found["losses"][0]


def a_communicator_has_the_same_verbs(rank: int, world_size: int, transports: str) -> None:
    """Without a process group of torch."""
    import numpy as np

    import pccl

    store = new_store()
    comm = pccl.Communicator(
        rank=rank, world_size=world_size, rendezvous=store, timeout=60.0, transports=transports
    )
    comm.all_reduce(np.ones(5))
    assert [peer.state for peer in comm.health(timeout=20.0)] == ["here"] * world_size
    with pytest.raises(pccl.InvalidArgumentError, match="name those to leave out"):
        comm.shrink()
    comm.barrier()
    if rank == 1:
        comm.shutdown()
        store.set("left", "")
        return
    store.wait(["left"])
    gone = comm.health(timeout=20.0)[1]
    assert gone.state == "gone"
    assert gone.last_sign_s is not None
    assert 0 < gone.last_sign_s < 60
    smaller = comm.shrink()
    assert (smaller.rank, smaller.world_size) == (0 if rank == 0 else rank - 1, world_size - 1)
    x = np.ones(5)
    smaller.all_reduce(x)
    assert (x == world_size - 1).all()
    names = {group["name"] for group in pccl.diagnostics.flight_record()["groups"]}
    assert {"world", "world:shrunk"} <= names
    with pytest.raises(pccl.AbortedError):
        comm.barrier()
    smaller.barrier()


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_communicator_has_the_same_verbs(transports: str) -> None:
    run_ranks(a_communicator_has_the_same_verbs, 3, backend=None, arguments=(transports,))


def a_smaller_group_serves_the_same_devices(rank: int, world_size: int) -> None:
    import pccl

    before = {device.type for device in dist.group.WORLD._device_types}
    last = world_size - 1
    meet("made", list(range(world_size)))
    if rank == last:
        return
    smaller = pccl.shrink(ranks_to_exclude=[last])
    assert {device.type for device in smaller._device_types} == before == {"cpu", "cuda"}
    x = torch.ones(5)
    dist.all_reduce(x, group=smaller)
    assert torch.equal(x, torch.full((5,), float(last)))


def test_a_smaller_group_serves_the_same_devices() -> None:
    run_ranks(a_smaller_group_serves_the_same_devices, 3)


def abort_ends_dialling(rank: int, world_size: int) -> None:
    """A peer that is stopped takes no handshake; abort does not wait for that."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.set("pid", str(os.getpid()))
        meet("made", [0, 1])
        os.kill(os.getpid(), signal.SIGSTOP)  # rank 0 lets it go on
        meet("over", [0, 1])
        return
    peer = int(store.get("pid"))
    meet("made", [0, 1])
    await_stopped(peer)
    errors: list[BaseException] = []

    def send() -> None:
        try:
            dist.send(torch.ones(3), 1)
        except RuntimeError as error:
            errors.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(0.3)
    begun = time.monotonic()
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    sender.join()
    took = time.monotonic() - begun
    os.kill(peer, signal.SIGCONT)
    assert took < 15, "abort waited for the peer"
    assert "abort" in str(errors[0])
    meet("over", [0, 1])


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_abort_ends_dialling(transports: str) -> None:
    environment = {"PCCL_TRANSPORTS": transports}
    run_ranks(abort_ends_dialling, 2, environment=environment)

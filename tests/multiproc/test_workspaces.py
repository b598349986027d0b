# SPDX-License-Identifier: Apache-2.0
"""``Communicator.memory``: memory that all ranks have, against what numpy says should be there."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from faults.network import why_no_namespaces
from support.launch import warm_processes
from support.ranks_on_hosts import run_on_hosts
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.multiproc

BYTES = 4096 + 8
NO_NAMESPACES = why_no_namespaces()


def run_processes(
    body: Callable[[pccl.Communicator], object], size: int, folder: Path
) -> list[int | None]:
    """Run ``body`` as ranks that are processes; return how they ended."""
    context = warm_processes()
    ranks = [
        context.Process(target=be_rank, args=(body, rank, size, f"file://{folder}/store"))
        for rank in range(size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
        process.kill()
    return [process.exitcode for process in ranks]


def be_rank(
    body: Callable[[pccl.Communicator], object], rank: int, size: int, rendezvous: str
) -> None:
    body(pccl.Communicator(rank=rank, world_size=size, rendezvous=rendezvous, timeout=30))


def pass_to_the_right(comm: pccl.Communicator) -> None:
    """Write to the right neighbour's part, and read what the left one wrote."""
    with comm.memory.allocate("halo", BYTES) as halo:
        assert halo.local.shape == (BYTES,)
        assert halo.local.ctypes.data % 4096 == 0
        assert not halo.local.any()
        comm.barrier()
        right, left = (comm.rank + 1) % comm.world_size, (comm.rank - 1) % comm.world_size
        halo.peer(right).view(np.int64)[:] = np.arange(BYTES // 8) * (comm.rank + 1)
        comm.barrier()
        np.testing.assert_array_equal(halo.local.view(np.int64), np.arange(BYTES // 8) * (left + 1))
        comm.barrier()


def test_processes_write_into_their_neighbours(tmp_path: Path) -> None:
    assert run_processes(pass_to_the_right, 3, tmp_path) == [0] * 3


def test_threads_write_into_their_neighbours(tmp_path: Path) -> None:
    run_threads(tmp_path, 3, pass_to_the_right)


def outlive_a_peer(comm: pccl.Communicator) -> None:
    halo = comm.memory.allocate("halo", BYTES)
    late = comm.memory.allocate("late", BYTES)
    halo.local[:] = comm.rank + 1
    theirs = halo.peer(1 - comm.rank)
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(pccl.PeerLostError):
        comm.barrier()
    assert (theirs == 2).all()
    theirs[:] = 7
    assert (halo.peer(1) == 7).all(), "what was mapped stays"
    with pytest.raises(pccl.UnsupportedError, match=r'"late": the part of rank 1 cannot be mapped'):
        late.peer(1)


def test_views_outlive_the_process_that_owns_them(tmp_path: Path) -> None:
    assert run_processes(outlive_a_peer, 2, tmp_path) == [0, -signal.SIGKILL]


def test_views_outlive_release_and_shutdown(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        halo = comm.memory.allocate("halo", BYTES)
        halo.local[:] = comm.rank + 1
        mine, theirs = halo.local, halo.peer(1 - comm.rank)[8:]
        comm.barrier()
        halo.release()
        halo.release()
        for use in (lambda: halo.local, lambda: halo.peer(0)):
            with pytest.raises(pccl.InvalidArgumentError, match='"halo" was released'):
                use()
        return mine, theirs

    (mine0, theirs0), (mine1, theirs1) = run_threads(tmp_path, 2, body)
    assert (mine0 == 1).all()
    assert (theirs0 == 2).all()
    theirs0[0] = 9
    assert mine1[8] == 9
    assert theirs1.base is not None


def test_a_released_name_starts_afresh(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[int]:
        found = []
        for nbytes in (16, 32):
            with comm.memory.allocate("w", nbytes) as w:
                found.append(int(w.local.sum()) + w.nbytes)
                w.local[:] = 1
        return found

    assert run_threads(tmp_path, 2, body) == [[16, 32]] * 2


def test_local_memory_is_torchs_by_dlpack() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    comm = pccl.Communicator()
    halo = comm.memory.allocate("halo", 8)
    tensor = torch.from_dlpack(halo.local)
    tensor[3] = 5
    assert halo.local.tolist() == [0, 0, 0, 5, 0, 0, 0, 0]


def test_collectives_take_workspaces(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> float:
        with comm.memory.allocate("sums", 80) as sums:
            x = sums.local.view(np.float64)
            x[:] = comm.rank + 1
            comm.all_reduce(x)
            return float(x[9])

    assert run_threads(tmp_path, 2, body) == [3.0, 3.0]


def test_different_sizes_and_names_are_reported_with_their_ranks(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> tuple[str, str, list[str]]:
        with pytest.raises(pccl.MismatchError) as sizes:
            comm.memory.allocate("halo", 100 if comm.rank == 2 else 50)
        with pytest.raises(pccl.MismatchError) as names:
            comm.memory.allocate("left" if comm.rank == 0 else "right", 50)
        left = comm.memory.names
        comm.memory.allocate("halo", 50)
        return str(sizes.value), str(names.value), left

    for sizes, names, left in run_threads(tmp_path, 3, body):
        assert '100 bytes named "halo" at rank 2, 50 bytes named "halo" at rank 0' in sizes
        assert '50 bytes named "right" at ranks 1, 2, 50 bytes named "left" at rank 0' in names
        assert left == []


def test_what_one_rank_cannot_allocate_no_rank_has(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> tuple[type, str, list[str]]:
        mine = comm.memory.allocate("taken", 8)
        if comm.rank == 1:
            mine.release()
        with pytest.raises(pccl.Error) as error:
            comm.memory.allocate("taken", 8)
        return error.type, str(error.value), comm.memory.names

    zero, one = run_threads(tmp_path, 2, body)
    assert zero[0] is pccl.InvalidArgumentError
    assert one[0] is pccl.MismatchError
    assert "rank 0 cannot" in one[1]
    assert all('"taken" exists; release it first' in text for _, text, _ in (zero, one))
    assert (zero[2], one[2]) == (["taken"], [])


def test_a_rank_with_a_wrong_name_on_a_gpu_leaves_nobody_waiting(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> type[pccl.Error]:
        with pytest.raises(pccl.Error) as refused:  # its own on each rank
            comm.memory.allocate("halo" if comm.rank == 0 else "", 8, "cuda:999", timeout=20)
        assert comm.all_reduce(np.ones(1)) is None  # the group goes on
        return refused.type

    assert pccl.TimeoutError not in run_threads(tmp_path, 2, body)


def test_a_list_of_what_there_is() -> None:
    comm = pccl.Communicator(name="solo")
    assert repr(comm.memory) == '<pccl.Memory of "solo": no workspace>'
    b = comm.memory.allocate("b", 20)
    comm.memory.allocate("a", 10)
    assert comm.memory.names == ["a", "b"]
    shown = '<pccl.Memory of "solo": a (10 bytes a rank), b (20 bytes a rank)>'
    assert repr(comm.memory) == shown
    assert repr(b) == '<pccl.Workspace "b": 20 bytes a rank>'
    b.release()
    assert repr(b) == '<pccl.Workspace "b": 20 bytes a rank, released>'
    assert comm.memory.names == ["a"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("", 1), pccl.InvalidArgumentError, "use 1 to 128 bytes"),
        (("x" * 129, 1), pccl.InvalidArgumentError, "use 1 to 128 bytes"),
        (("a\0b", 1), pccl.InvalidArgumentError, "none of them 0"),
        (("pccl/lib", 1), pccl.InvalidArgumentError, "do not start with pccl/"),
        (("w", 0), pccl.InvalidArgumentError, "has no bytes"),
        (("w", 1 << 62), pccl.ResourceExhaustedError, "bytes"),
        (("w", 8, "tpu"), pccl.UnsupportedError, "no workspace on device 'tpu'"),
    ],
)
def test_the_error_of_a_wrong_call_names_the_right_one(
    arguments: tuple[Any, ...], error: type[pccl.Error], words: str
) -> None:
    comm = pccl.Communicator()
    with pytest.raises(error, match=words):
        comm.memory.allocate(*arguments)
    assert comm.memory.names == []


def test_a_rank_that_is_none_has_no_part() -> None:
    halo = pccl.Communicator().memory.allocate("halo", 8)
    for rank in (-1, 1):
        with pytest.raises(pccl.InvalidArgumentError, match="is not one of 1"):
            halo.peer(rank)


def map_across_hosts(comm: pccl.Communicator) -> str:
    halo = comm.memory.allocate("halo", 64)
    halo.local[:] = comm.rank
    comm.barrier()
    found = "" if comm.rank == 2 else str(halo.peer(1 - comm.rank)[0])
    try:
        halo.peer(0 if comm.rank == 2 else 2)
    except pccl.UnsupportedError as error:
        return f"{found} {error}"
    return "mapped the memory of another host"


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
def test_memory_of_another_host_is_refused_in_a_line(tmp_path: Path) -> None:
    zero, one, two = run_on_hosts(map_across_hosts, [0, 0, 1], tmp_path)
    refusal = (
        'workspace "halo": the part of rank {} cannot be mapped: the memory is on another host'
    )
    assert zero.startswith(f"1 {refusal.format(2)}")
    assert one.startswith(f"0 {refusal.format(2)}")
    assert refusal.format(0) in two
    assert "exchange it by send and recv, or by a collective" in two

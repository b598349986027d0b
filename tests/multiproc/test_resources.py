# SPDX-License-Identifier: Apache-2.0
"""What groups take of a process, and what happens when there is none left."""

import contextlib
import ctypes
import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from support.background import threads_of_pccl
from support.launch import new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such promises")]
CYCLES = 1000
MANY_GROUPS = 12
IDLE_S = 4.0
MOST_IDLE_CPU = 0.005
LONG = timedelta(seconds=100)  # a timeout that is not to pass


def resident_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def shared_mappings() -> int:
    return Path("/proc/self/maps").read_text().count("/memfd:pccl")


def use_and_destroy_a_group() -> None:
    group = dist.new_group()
    dist.all_reduce(torch.ones(100), group=group, async_op=True).wait()
    dist.destroy_process_group(group)


def settled(count: Callable[[], int], most: int) -> int:
    """Peers may still be closing theirs."""
    deadline = time.monotonic() + 20
    while count() > most and time.monotonic() < deadline:
        time.sleep(0.01)
    return count()


def a_thousand_groups_leave_nothing(rank: int, world_size: int) -> dict[str, tuple[int, int]]:
    dist.barrier()
    for _ in range(100):  # what is allocated once is there now
        use_and_destroy_a_group()
    dist.barrier()
    before = descriptors(), shared_mappings(), resident_kib()
    for _ in range(CYCLES):
        use_and_destroy_a_group()
    dist.barrier()
    after = (
        settled(descriptors, before[0]),
        settled(shared_mappings, before[1]),
        resident_kib(),
    )
    assert after[0] <= before[0]
    assert after[1] <= before[1]
    assert after[2] - before[2] < 8 << 10, (before, after)  # torch itself keeps some of each
    # The thread of a call to the store ends just after the call.
    assert settled(lambda: len(threads_of_pccl()), 2) <= 2, threads_of_pccl()
    names = ("descriptors", "mappings", "resident KiB")
    return {name: (b, a) for name, b, a in zip(names, before, after, strict=True)}


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_thousand_groups_leave_nothing(transports: str) -> None:
    found = run_ranks(
        a_thousand_groups_leave_nothing,
        2,
        timeout_s=300,
        environment={"PCCL_TRANSPORTS": transports},
    )
    print(f"before and after {CYCLES} groups: {found[0]}")


def many_groups_add_up(rank: int, world_size: int) -> None:
    groups = [dist.new_group(timeout=LONG) for _ in range(MANY_GROUPS)]
    for number, group in enumerate(groups):
        numbers = torch.arange(100_000.0) * (rank + 1) + number
        dist.all_reduce(numbers, group=group)
        ranks = world_size * (world_size + 1) / 2
        torch.testing.assert_close(numbers, torch.arange(100_000.0) * ranks + number * world_size)
    dist.barrier()


@pytest.mark.parametrize("world_size", [3, 5])
def test_numbers_of_ranks_that_are_no_power_of_two_have_many_groups(world_size: int) -> None:
    """What they share a file of memory in is no power of two of it, and each takes a part."""
    run_ranks(many_groups_add_up, world_size)


def idle_costs_nothing(rank: int, world_size: int) -> float:
    groups = [dist.new_group() for _ in range(20)]
    for group in groups:
        dist.all_reduce(torch.ones(100), group=group, async_op=True).wait()
    dist.barrier()
    assert len(threads_of_pccl()) <= 2, threads_of_pccl()
    before = sum(os.times()[:2])
    time.sleep(IDLE_S)
    share = (sum(os.times()[:2]) - before) / IDLE_S
    dist.barrier()
    return share


@pytest.mark.alone  # caches that others empty cost time, too
@pytest.mark.parametrize("transports", ["", "tcp"])
def test_an_idle_process_takes_no_time(transports: str) -> None:
    shares = run_ranks(idle_costs_nothing, 2, environment={"PCCL_TRANSPORTS": transports})
    print("idle CPU: " + ", ".join(f"{100 * share:.3f} %" for share in shares))
    assert max(shares) < MOST_IDLE_CPU


@contextlib.contextmanager
def few_descriptors(room: int) -> Iterator[int]:
    """Leave this process room for so many more; give its limit."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = descriptors() + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    held: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.dup(0))
    for _ in range(room):
        os.close(held.pop())
    try:
        yield limit
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


def descriptors_at_rest() -> int:
    """Return the number of open descriptors once it has not changed for a while."""
    found, since = descriptors(), time.monotonic()
    while time.monotonic() - since < 0.5:
        time.sleep(0.01)
        if (now := descriptors()) != found:
            found, since = now, time.monotonic()
    return found


def check_at_rest(usual: int) -> None:
    """Check that a group's descriptors are closed, also by the thread that accepts links.

    That thread may have closed its reserve for a peer, and then has one fewer for a while.
    """
    found = settled(descriptors, usual)
    names = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert found <= usual, (found, usual, sorted(names))


def meet(what: str) -> None:
    """A barrier that needs no group of ours."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{what}/{dist.get_rank()}", "")
    store.wait([f"{what}/{other}" for other in range(dist.get_world_size())])


def use_a_new_group() -> None:
    """Over TCP, ranks connect at the first use, which some may end before another fails in it."""
    group = dist.new_group(timeout=LONG)
    try:
        dist.all_reduce(torch.ones(3), group=group)
        dist.barrier(group)
    finally:
        dist.destroy_process_group(group)


def descriptors_run_out(rank: int, world_size: int, rooms: Sequence[int]) -> None:
    """A rank says what it is short of, its peers which rank, at once; groups that exist go on."""
    import pccl

    use_a_new_group()
    meet("begun")
    usual = descriptors_at_rest()
    for short, room in itertools.product(range(world_size), rooms):
        check_at_rest(usual)
        with contextlib.ExitStack() as stack:
            limit = stack.enter_context(few_descriptors(room)) if rank == short else 0
            begun = time.monotonic()
            with pytest.raises(pccl.Error) as caught:
                use_a_new_group()
            where = (short, room, time.monotonic() - begun, caught.value)
            assert time.monotonic() - begun < LONG.total_seconds() / 5, where
            meet(f"tried/{short}/{room}")
        if rank == short:
            assert isinstance(caught.value, pccl.ResourceExhaustedError), where
            assert "open files" in str(caught.value), where
            assert f"{limit} (ulimit -n)" in str(caught.value), where
        else:
            assert isinstance(caught.value, pccl.PeerLostError), where
            assert caught.value.rank == short, where
            assert f"rank {short}" in str(caught.value), where
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x[0] == world_size


@pytest.mark.parametrize(
    ("transports", "rooms"), [("", (0, 1, 3, 6)), ("tcp", (0, 1, 3, 6, 8, 9, 12))]
)
def test_descriptors_run_out(transports: str, rooms: Sequence[int]) -> None:
    run_ranks(
        descriptors_run_out,
        3,
        arguments=[rooms],
        timeout_s=180,
        environment={"PCCL_TRANSPORTS": transports},
    )


def memory_runs_out(rank: int, world_size: int) -> None:
    """Address space that does not hold another group's shared memory."""
    import pccl

    dist.all_reduce(torch.ones(3))
    store = dist.distributed_c10d._get_default_store()
    usual, most = resource.getrlimit(resource.RLIMIT_AS)
    if rank == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (2 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    with pytest.raises(pccl.Error) as caught:
        dist.new_group(timeout=timedelta(seconds=4))
    resource.setrlimit(resource.RLIMIT_AS, (usual, most))
    if rank == 0:
        assert isinstance(caught.value, pccl.ResourceExhaustedError), caught.value
    store.set(f"tried/{rank}", "")
    store.wait([f"tried/{other}" for other in range(world_size)])
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x[0] == world_size


def test_memory_runs_out() -> None:
    run_ranks(memory_runs_out, 2, timeout_s=30)


def without_room_in_dev_shm(rank: int, world_size: int) -> bool:
    """In a mount namespace of its own, whose /dev/shm is full."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mount_namespace, recursive, private = 0x20000, 0x4000, 1 << 18
    if libc.unshare(new_mount_namespace) or libc.mount(b"", b"/", None, recursive | private, None):
        return False
    if libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=4k"):
        return False
    with contextlib.suppress(OSError):
        Path("/dev/shm/full").write_bytes(bytes(8192))
    dist.init_process_group("pccl", store=new_store(), rank=rank, world_size=world_size)
    x = torch.ones(1 << 20)
    dist.all_reduce(x)
    assert x[0] == world_size
    assert shared_mappings() > 0
    dist.destroy_process_group()
    return True


def test_a_full_dev_shm_does_not_matter() -> None:
    if not all(run_ranks(without_room_in_dev_shm, 2, backend=None, timeout_s=30)):
        pytest.skip("this machine does not let us make mount namespaces")


def signals_do_not_disturb(rank: int, world_size: int) -> None:
    """A handler that runs all the time; every wait is interrupted."""
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for count in (1, 1000, 300_000):
        for _ in range(50):
            x = torch.full((count,), float(rank + 1))
            dist.all_reduce(x)
            assert (x == world_size * (world_size + 1) / 2).all()
    group = dist.new_group()
    dist.barrier(group)
    dist.destroy_process_group(group)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_signals_do_not_disturb(transports: str) -> None:
    run_ranks(signals_do_not_disturb, 3, environment={"PCCL_TRANSPORTS": transports})


def test_no_deadline_hangs_on_the_wall_clock() -> None:
    """The only use of it is in records that people read."""
    root = Path(__file__).parents[2]
    found = subprocess.run(
        ["grep", "-rnE", "CLOCK_REALTIME|system_clock::|gettimeofday|[^_]time\\(NULL", "csrc"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    allowed = ("csrc/base/clock.cc",)
    assert [line for line in found if not line.startswith(allowed)] == []


def an_exception_in_the_middle(rank: int, world_size: int) -> None:
    """Work in flight when its owner raises: the group ends, and nobody waits for it for ever."""
    import pccl

    group = dist.new_group(timeout=timedelta(seconds=20))

    def train() -> None:
        works = [dist.all_reduce(torch.ones(1 << 18), group=group, async_op=True) for _ in range(3)]
        if rank == 1:
            raise ValueError("no such sample")
        for work in works:
            work.wait()
        dist.all_reduce(torch.ones(3), group=group)

    with pytest.raises(ValueError if rank == 1 else pccl.PeerLostError):
        train()
    if rank == 1:
        dist.destroy_process_group(group)
    dist.barrier()


def test_an_exception_in_the_middle() -> None:
    run_ranks(an_exception_in_the_middle, 3, timeout_s=30)


def interrupts_are_received(rank: int, world_size: int, interrupted: int) -> None:
    """Ctrl-C while the group is being made, which the last rank never joins."""
    if rank == world_size - 1:
        new_store().wait([f"ended/{other}" for other in range(world_size - 1)])
        return
    import pccl

    store = new_store()
    if rank == interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt if rank == interrupted else pccl.PeerLostError) as caught:
        dist.init_process_group("pccl", store=store, rank=rank, world_size=world_size)
    assert time.monotonic() - begun < 10
    if rank != interrupted:
        assert caught.value.rank == interrupted
        assert f"rank {interrupted} cannot join: a signal interrupted" in str(caught.value)
    new_store().set(f"ended/{rank}", "")


@pytest.mark.parametrize("interrupted", [0, 1])
def test_interrupts_end_the_rendezvous(interrupted: int) -> None:
    run_ranks(interrupts_are_received, 3, arguments=(interrupted,), backend=None, timeout_s=30)


STORE = """
import sys, time
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
time.sleep(3600)
"""


def a_store_dies(rank: int, world_size: int, port: int, pid: int) -> None:
    """Groups that exist need no store; one that is being made says what is missing."""
    import pccl

    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("pccl", store=store, rank=rank, world_size=world_size)
    dist.barrier()
    if rank == 0:
        os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        dist.all_reduce(torch.ones(100))
    begun = time.monotonic()
    with pytest.raises((pccl.UnavailableError, dist.DistError)):
        dist.new_group(timeout=timedelta(seconds=10))
    assert time.monotonic() - begun < 12
    dist.all_reduce(torch.ones(100))
    dist.destroy_process_group()


def test_a_store_dies() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", STORE], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        run_ranks(a_store_dies, 2, backend=None, arguments=(port, server.pid), timeout_s=30)
    finally:
        server.kill()
        server.wait()

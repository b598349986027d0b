# SPDX-License-Identifier: Apache-2.0
"""What goes wrong must end in an error that says what and who, never in a hang."""

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

from support.launch import die_with_parent, new_store, not_on_gloo, run_ranks
from support.torch_names import HAS_WORK_EXCEPTION

SHORT = timedelta(milliseconds=300)  # for what nobody comes to
UNHURRIED = timedelta(seconds=3)  # for what others must come to before
PATIENCE_S = 120
pytestmark = [pytest.mark.multiproc, not_on_gloo("hangs, dies or passes here")]


def backend() -> dist.Backend:
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def all_reduce_within(timeout: timedelta) -> dist.Work:
    options = dist.AllreduceOptions()
    options.timeout = timeout
    return dist.group.WORLD.allreduce([torch.ones(3)], options)


def wait_for_all(key: str) -> None:
    """Meet the other ranks in the store, when the group can no longer be used."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{key}/{dist.get_rank()}", "")
    store.wait([f"{key}/{rank}" for rank in range(dist.get_world_size())])


def an_operation_times_out(rank: int, world_size: int) -> None:
    """The timeout is the operation's own; rank 0 waits for nobody else, so it must name one."""
    if rank == 0:
        with pytest.raises(RuntimeError, match=r"pccl:all_reduce Timed out .*rank \d"):
            all_reduce_within(SHORT).wait()
    wait_for_all("timed out")


def an_asynchronous_operation_times_out(rank: int, world_size: int) -> None:
    """Nobody waits: the error is there all the same, in every form."""
    if rank == 0:
        options = dist.AllreduceOptions()
        options.timeout, options.asyncOp = SHORT, True
        work = dist.group.WORLD.allreduce([torch.ones(3)], options)
        future = work.get_future()
        while not work.is_completed():
            threading.Event().wait(0.01)
        assert not work.is_success()
        if HAS_WORK_EXCEPTION:
            assert "Timed out" in str(work.exception())
        with pytest.raises(RuntimeError, match="Timed out"):
            future.wait()
        with pytest.raises(RuntimeError, match="Timed out"):
            work.wait()
    wait_for_all("timed out")


def a_groups_timeout_holds(rank: int, world_size: int) -> None:
    group = dist.new_group(timeout=UNHURRIED)
    if rank == 0:
        with pytest.raises(RuntimeError, match="Timed out"):
            dist.recv(torch.ones(1), src=1, group=group)
    wait_for_all("timed out")


def a_barrier_times_out(rank: int, world_size: int) -> None:
    if rank == 0:
        options = dist.BarrierOptions()
        options.timeout, options.asyncOp = SHORT, False
        with pytest.raises(RuntimeError, match="Timed out"):
            dist.group.WORLD.barrier(options)
    wait_for_all("timed out")


def memory_of_those_who_gave_up_is_not_taken(rank: int, world_size: int) -> None:
    """A gather of large blocks reads them from where they lie, if the kernel lets it."""
    import pccl

    options = pccl.Options(algorithm="gather=shm_direct")
    group = dist.new_group(timeout=UNHURRIED, pg_options=options)
    x = torch.full((1 << 18,), float(rank))
    if rank != 0:
        with pytest.raises(RuntimeError, match=r"(?i)timed out"):
            dist.gather(x, dst=0, group=group)
        x.fill_(-1)
    wait_for_all("given up")
    if rank == 0:
        blocks = [torch.empty_like(x) for _ in range(world_size)]
        with pytest.raises(RuntimeError, match=r"rank \d has left the group: timed out"):
            dist.gather(x, blocks, group=group)
    wait_for_all("not taken")


def monitored_barrier_names_the_missing(rank: int, world_size: int) -> None:
    import pccl

    pccl.torch.monitored_barrier()
    pccl.torch.monitored_barrier(timeout=timedelta(seconds=20), wait_all_ranks=True)
    missing = world_size - 1
    group = dist.new_group()
    if rank == 0:
        with pytest.raises(RuntimeError, match=rf"Rank {missing} failed to pass monitoredBarrier"):
            pccl.torch.monitored_barrier(group, UNHURRIED)
    elif rank != missing:
        with pytest.raises(RuntimeError, match="monitoredBarrier"):
            pccl.torch.monitored_barrier(group, UNHURRIED)
    wait_for_all("first")
    group = dist.new_group()
    if rank == 0:
        everyone = ", ".join(str(other) for other in range(1, world_size))
        with pytest.raises(RuntimeError, match=rf"Ranks {everyone} failed to pass"):
            pccl.torch.monitored_barrier(group, SHORT, wait_all_ranks=True)
    wait_for_all("second")


def abort_wakes_those_who_wait(rank: int, world_size: int) -> None:
    if rank == 0:
        errors: list[BaseException] = []
        started = threading.Event()

        def wait() -> None:
            started.set()
            try:
                dist.all_reduce(torch.ones(3))
            except RuntimeError as error:
                errors.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        started.wait()
        threading.Event().wait(0.1)
        backend().abort()
        waiter.join()
        assert "abort" in str(errors[0])
        with pytest.raises(RuntimeError, match="abort"):
            dist.all_reduce(torch.ones(3))
    wait_for_all("aborted")


def ends_as_often_as_you_like(rank: int, world_size: int) -> None:
    ended = backend()
    dist.all_reduce(torch.ones(3))
    wait_for_all("reduced")
    for _ in range(2):
        ended.abort()
        ended.shutdown()
    dist.destroy_process_group()
    ended.shutdown()
    ended.abort()


def counts_that_differ_are_named(rank: int, world_size: int) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)mismatch.*(3|4).*(3|4)"):
        dist.all_reduce(torch.ones(3 + (rank == 0)))
    wait_for_all("mismatch")


def operators_that_differ_are_named(rank: int, world_size: int) -> None:
    with pytest.raises(RuntimeError, match=r"(?si)mismatch.*(sum|max).*(sum|max)"):
        dist.all_reduce(torch.ones(3), dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX)
    wait_for_all("mismatch")


def collectives_that_differ_are_named(rank: int, world_size: int) -> None:
    """A broadcast's root waits for nobody and may hear of it in its next collective only."""

    def broadcast_and_meet() -> None:
        dist.broadcast(torch.ones(3), 0)
        dist.barrier()

    with pytest.raises(RuntimeError, match="mismatch"):
        broadcast_and_meet() if rank == 0 else dist.all_reduce(torch.ones(3))
    wait_for_all("mismatch")


def messages_of_the_wrong_length_are_refused(rank: int, world_size: int) -> None:
    if rank == 0:
        dist.isend(torch.ones(5), 1)
    if rank == 1:
        with pytest.raises(RuntimeError, match=r"(20|8) bytes"):
            dist.recv(torch.ones(2), 0)
    wait_for_all("refused")


def groups_end_with_callbacks_in_flight(rank: int, world_size: int) -> None:
    """A callback wants the GIL while destroying the group joins what would run it."""
    for _ in range(8):
        group = dist.new_group()
        ran: list[int] = []
        futures = [
            dist.all_reduce(torch.ones(1000), group=group, async_op=True)
            .get_future()
            .then(lambda _, ran=ran: ran.append(sum(range(1000))))
            for _ in range(5)
        ]
        for future in futures:
            future.wait()
        dist.destroy_process_group(group)
        assert len(ran) == 5
        del group
        gc.collect()


def groups_end_with_work_in_flight(rank: int, world_size: int) -> None:
    """Rank 0's collectives never meet their peers; the other ranks go without them."""
    group = dist.new_group()
    works = []
    if rank == 0:
        works = [dist.all_reduce(torch.ones(10), group=group, async_op=True) for _ in range(5)]
    wait_for_all("started")
    dist.destroy_process_group(group)
    for work in works:
        with pytest.raises(RuntimeError, match=r"shut down|has left the group"):
            work.wait()
    wait_for_all("ended")


def a_forked_child_leaves_its_parent_alone(rank: int, world_size: int) -> None:
    dist.all_reduce(torch.ones(3))
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(3))
        except RuntimeError as error:
            dist.destroy_process_group()
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    dist.all_reduce(torch.ones(3))


def in_a_doomed_job(rank: int, world_size: int, port: int, results: object) -> None:
    """Run as a process of its own: the last rank dies, the others must learn who it was."""
    die_with_parent()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("pccl", store=store, rank=rank, world_size=world_size)
    dist.all_reduce(torch.ones(10))
    if rank == world_size - 1:
        os._exit(7)
    try:
        for _ in range(2):  # the first may have got all it needed before the end
            dist.all_reduce(torch.ones(100_000))
        results.put((rank, "no error"))
    except RuntimeError as error:
        results.put((rank, str(error)))
    dist.destroy_process_group()


def start_job(run: Callable[..., None], ranks: int) -> tuple[list[Any], Any]:
    """Processes, each with a rank of its own, and the queue for what they find."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    port = new_store().port
    processes = [
        context.Process(target=run, args=(rank, ranks, port, results)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    return processes, results


def survivors_name_the_lost_rank(rank: int, world_size: int, ranks: int) -> None:
    processes, results = start_job(in_a_doomed_job, ranks)
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * (ranks - 1) + [7]
    messages = dict(results.get() for _ in range(ranks - 1))
    assert sorted(messages) == list(range(ranks - 1))
    for message in messages.values():
        assert f"rank {ranks - 1}" in message


def who_is_late_to_join_is_held_up(rank: int, world_size: int) -> None:
    """Rank 1 waits for rank 0 to join a group; that one waits in another for a stopped rank 2."""
    store = dist.distributed_c10d._get_default_store()
    dist.all_reduce(torch.ones(3))
    if rank == 2:
        store.set("stopped", str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    if rank == 1:
        stopped = int(store.get("stopped"))
        try:
            with pytest.raises(RuntimeError, match=r"rank 0 has not joined.* held up .* rank 2"):
                dist.new_group(timeout=UNHURRIED)
        finally:
            os.kill(stopped, signal.SIGCONT)
    dist.all_reduce(torch.ones(3))


def in_a_held_up_job(rank: int, world_size: int, port: int, results: Any) -> None:
    """Rank 2 is stopped; rank 0 waits for it in vain and ends, and rank 1 waits for rank 0."""
    die_with_parent()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    store.set(f"started/{rank}", "")
    store.wait([f"started/{other}" for other in range(world_size)])
    dist.init_process_group(
        "pccl", store=store, rank=rank, world_size=world_size, timeout=UNHURRIED
    )
    dist.all_reduce(torch.ones(3))
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        if rank == 0:
            dist.broadcast(torch.ones(3), 2)
        else:
            dist.new_group(timeout=4 * UNHURRIED)
    except RuntimeError as error:
        results.put((rank, getattr(error, "rank", error)))
    dist.destroy_process_group()


def who_left_without_joining_was_held_up(rank: int, world_size: int) -> None:
    processes, results = start_job(in_a_held_up_job, 3)
    for process in processes[:2]:
        process.join()
    processes[2].kill()
    processes[2].join()
    blamed = dict(results.get() for _ in range(2))
    assert blamed == {0: 2, 1: 2}, blamed


def in_a_job_with_last_words(rank: int, world_size: int, port: int, results: Any) -> None:
    """Rank 0 ends, then rank 1 because of that. Rank 2 has read nothing of rank 1's yet."""
    die_with_parent()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("pccl", store=store, rank=rank, world_size=world_size)
    if rank == 0:
        store.wait(["sent"])
        os._exit(7)
    if rank == 1:
        dist.send(torch.ones(100), 2)
        store.set("sent", "")
    else:
        store.wait(["gone"])
    try:
        if rank == 1:
            dist.recv(torch.ones(3), 0)
        else:
            dist.send(torch.ones(3), 1)
    except RuntimeError as error:
        results.put((rank, getattr(error, "rank", error)))
    dist.destroy_process_group()
    store.set("gone", "")


def close_reasons_behind_data_are_received(rank: int, world_size: int) -> None:
    processes, results = start_job(in_a_job_with_last_words, 3)
    for process in processes:
        process.join()
    blamed = dict(results.get() for _ in range(2))
    assert blamed == {1: 0, 2: 0}, blamed


def who_has_done_its_part_may_leave(rank: int, world_size: int) -> None:
    """Rank 2 is stopped, asked meanwhile how it fares, and gone before it can answer."""
    store = dist.distributed_c10d._get_default_store()
    for number in range(8):
        group = dist.new_group()
        dist.all_reduce(torch.ones(3), group=group)
        if rank == 2:
            store.set(f"stopped{number}", str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        if rank == 1:
            stopped = int(store.get(f"stopped{number}"))
            time.sleep(0.3 + 0.03 * number)  # questions come after 0.3 s, and are open for 0.2
            os.kill(stopped, signal.SIGCONT)
        x = torch.full((3,), float(rank))
        dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
        assert x.tolist() == [3.0, 3.0, 3.0]


CHECKS = [
    an_operation_times_out,
    an_asynchronous_operation_times_out,
    a_groups_timeout_holds,
    a_barrier_times_out,
    memory_of_those_who_gave_up_is_not_taken,
    monitored_barrier_names_the_missing,
    abort_wakes_those_who_wait,
    ends_as_often_as_you_like,
    counts_that_differ_are_named,
    operators_that_differ_are_named,
    collectives_that_differ_are_named,
    messages_of_the_wrong_length_are_refused,
    groups_end_with_callbacks_in_flight,
    groups_end_with_work_in_flight,
    a_forked_child_leaves_its_parent_alone,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_failures(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size, timeout_s=PATIENCE_S)


def test_who_is_late_to_join_is_held_up() -> None:
    run_ranks(who_is_late_to_join_is_held_up, 3, timeout_s=PATIENCE_S)


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_who_left_without_joining_was_held_up(transports: str) -> None:
    run_ranks(
        who_left_without_joining_was_held_up,
        1,
        backend=None,
        timeout_s=PATIENCE_S,
        environment={"PCCL_TRANSPORTS": transports},
    )


def test_close_reasons_behind_data_are_received() -> None:
    run_ranks(
        close_reasons_behind_data_are_received,
        1,
        backend=None,
        timeout_s=PATIENCE_S,
        environment={"PCCL_TRANSPORTS": "tcp"},
    )


def test_who_has_done_its_part_may_leave() -> None:
    run_ranks(who_has_done_its_part_may_leave, 3, timeout_s=PATIENCE_S)


@pytest.mark.parametrize("ranks", [2, 4])
def test_survivors_name_the_lost_rank(ranks: int) -> None:
    run_ranks(
        survivors_name_the_lost_rank, 1, backend=None, arguments=(ranks,), timeout_s=PATIENCE_S
    )

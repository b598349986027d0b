# SPDX-License-Identifier: Apache-2.0
"""The backend as torch sees it: its name, its options, groups split from groups, windows."""

import copy
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import pccl
from support.launch import new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has another name and fewer features")]


def backend(group: dist.ProcessGroup | None = None) -> dist.Backend:
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


def has_its_name(rank: int, world_size: int) -> None:
    assert dist.get_backend() == "pccl"
    assert backend().name() == "pccl"
    assert backend().rank() == rank
    assert backend().size() == world_size
    assert backend().supports_splitting
    assert backend().supports_coalescing


def options_are_copies(rank: int, world_size: int) -> None:
    options = backend().options
    options._timeout = timedelta(seconds=1)
    options.group_name = "changed"
    fresh = backend().options
    assert fresh._timeout == timedelta(seconds=60)
    assert fresh.group_name != "changed"
    assert list(fresh.global_ranks_in_group) == list(range(world_size))
    assert copy.deepcopy(fresh)._timeout == fresh._timeout


def shows_its_hosts(rank: int, world_size: int) -> None:
    job = pccl.topology.job()
    assert [host.ranks for host in job.hosts] == [list(range(world_size))]
    assert job.order == list(range(world_size))
    digests: list[object] = [None] * world_size
    dist.all_gather_object(digests, job.digest)
    assert digests == [job.digest] * world_size


def explains_itself(rank: int, world_size: int) -> None:
    found = pccl.explain("all_reduce", 1 << 20)
    assert (found.collective, found.nbytes, found.ranks) == ("all_reduce", 1 << 20, world_size)
    assert found.chosen in found.ways
    assert f"* {found.chosen.algorithm}" in str(found)
    with pytest.raises(ValueError, match="'all_send' is no collective"):
        pccl.explain("all_send", 1)
    gloo = [dist.new_group([member], backend="gloo") for member in range(world_size)][rank]
    with pytest.raises(ValueError, match="explain needs a process group with the backend pccl"):
        pccl.explain("all_reduce", 1, gloo)


def splits(rank: int, world_size: int) -> None:
    """Halves, then single ranks: those outside get None, the parent goes on as it was."""
    half = world_size // 2
    timeout_before = backend().options._timeout
    for members in (list(range(half)), list(range(half, world_size))):
        child = dist.group.WORLD.split_group(members, timedelta(seconds=20))
        if rank in members:
            value = torch.tensor([2.0**rank])
            child.allreduce([value]).wait()
            assert value.item() == sum(2.0**member for member in members)
            assert child.rank() == members.index(rank)
            assert backend(child).options._timeout == timedelta(seconds=20)
            assert list(backend(child).options.global_ranks_in_group) == members
        else:
            assert child is None
    assert backend().options._timeout == timeout_before
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value.item() == world_size


def windows_take_any_operation(rank: int, world_size: int) -> None:
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    shared, received = torch.full((4,), float(rank)), torch.empty(4)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as window:
        dist.isend(torch.full((4,), float(rank)), following)
        dist.broadcast(shared, 0, async_op=True)
        dist.irecv(received, previous)
    window.wait()
    assert torch.equal(shared, torch.zeros(4))
    assert torch.equal(received, torch.full((4,), float(previous)))


def empty_windows_complete(rank: int, world_size: int) -> None:
    backend()._start_coalescing()
    work = backend()._end_coalescing()
    assert work.wait()
    assert work.is_completed()


def works_can_be_timed(rank: int, world_size: int) -> None:
    backend()._enable_collectives_timing()
    work = dist.all_reduce(torch.ones(100_000), async_op=True)
    work.wait()
    assert work._get_duration() > 0
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as window:
        dist.all_reduce(torch.ones(100_000), async_op=True)
    window.wait()
    assert window.works[0]._get_duration() > 0


def works_report_why_they_have_no_time(rank: int, world_size: int) -> None:
    untimed = dist.all_reduce(torch.ones(1), async_op=True)
    untimed.wait()
    with pytest.raises(RuntimeError, match="pccl:all_reduce was not timed: enable"):
        untimed._get_duration()
    backend()._enable_collectives_timing()
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    received = dist.irecv(torch.empty(1), previous)
    with pytest.raises(RuntimeError, match="pccl:recv has not finished yet"):
        received._get_duration()
    dist.barrier()
    dist.isend(torch.ones(1), following).wait()
    received.wait()
    assert received._get_duration() > 0


def works_report_to_a_hook(rank: int, world_size: int) -> None:
    group, reports = dist.group.WORLD, []
    group._register_on_completion_hook(reports.append)
    for _ in range(3):
        dist.all_reduce(torch.ones(10), async_op=True).wait()
    group._wait_for_pending_works()
    assert sorted(report.seq for report in reports) == [1, 2, 3]
    assert all(report.active_duration >= timedelta(0) for report in reports)


def ranks_outside_a_new_group_are_recognised(rank: int, world_size: int) -> None:
    """new_group calls this, after an init with device_id, on any backend that can split."""
    backend().perform_nocolor_split(torch.device("cpu"))


def the_default_timeout_is_torchs(rank: int, world_size: int) -> None:
    dist.destroy_process_group()
    dist.init_process_group("pccl", store=dist.HashStore(), rank=0, world_size=1)
    assert backend().options._timeout == timedelta(minutes=30)


def groups_are_counted_apart(rank: int, world_size: int) -> None:
    group = dist.new_group()
    dist.all_reduce(torch.ones(1))
    dist.all_reduce(torch.ones(1))
    dist.all_reduce(torch.ones(1), group=group)
    assert backend()._get_sequence_number_for_group() == 2
    assert backend(group)._get_sequence_number_for_group() == 1


def further_groups_share_the_memory_of_the_first(rank: int, world_size: int) -> None:
    """Maps name the file behind each mapping by its inode."""
    groups = [dist.group.WORLD, *(dist.new_group() for _ in range(3))]
    for group in groups:
        value = torch.ones(1 << 16)
        dist.all_reduce(value, group=group)
        assert value.eq(world_size).all()
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    regions = [fields for fields in maps if "pccl-region" in fields[-2]]
    assert len(regions) == len(groups)
    assert len({inode for _, _, _, _, inode, *_ in regions}) == 1


def groups_of_one(rank: int, world_size: int) -> None:
    groups = [dist.new_group([member]) for member in range(world_size)]
    value = torch.ones(3)
    dist.all_reduce(value, group=groups[rank])
    assert value.tolist() == [1, 1, 1]


def groups_have_algorithms_of_their_own(rank: int, world_size: int) -> None:
    import pccl

    def chosen(group: dist.ProcessGroup | None) -> str:
        ways = pccl.explain("all_reduce", 1 << 20, group).ways
        return next(way.algorithm for way in ways if way.is_chosen)

    usual = chosen(None)
    for algorithm in ("ring", "two_shot"):
        options = pccl.Options(algorithm=f"all_reduce={algorithm}")
        group = dist.new_group(pg_options=options)
        assert chosen(group) == algorithm
        value = torch.full((1000,), float(rank))
        dist.all_reduce(value, group=group)
        assert value.tolist() == [float(sum(range(world_size)))] * 1000
    assert chosen(None) == usual
    with pytest.raises(ValueError, match="no collective and algorithm: 'ring'; name algorithms"):
        pccl.Options(algorithm="ring")
    with pytest.raises(ValueError, match="shm_two_shot does not make all_gather; there are shm_o"):
        pccl.Options(algorithm="all_gather=shm_two_shot")


def options_must_agree(rank: int, world_size: int) -> None:
    import pccl

    wanted = "ring" if rank == 0 else "two_shot"
    group = dist.new_group(pg_options=pccl.Options(algorithm=f"all_reduce={wanted}"))
    with pytest.raises(pccl.MismatchError, match="all_reduce"):
        dist.all_reduce(torch.ones(1000), group=group)


def one_transport(rank: int, world_size: int, transports: str) -> None:
    """Restrict the job to one transport; enough traffic for every path through it."""
    import pccl

    dist.init_process_group(
        "pccl",
        store=new_store(),
        rank=rank,
        world_size=world_size,
        pg_options=pccl.Options(transports=transports),
    )
    for count in (1, 1000, 1_000_003):
        value = torch.full((count,), float(rank))
        dist.all_reduce(value)
        assert torch.equal(value, torch.full((count,), float(sum(range(world_size)))))
        received = torch.empty(count)
        work = dist.isend(torch.full((count,), float(rank)), (rank + 1) % world_size)
        dist.recv(received, (rank - 1) % world_size)
        work.wait()
        assert received[-1].item() == (rank - 1) % world_size
    dist.destroy_process_group()


CHECKS = [
    has_its_name,
    explains_itself,
    shows_its_hosts,
    options_are_copies,
    groups_have_algorithms_of_their_own,
    options_must_agree,
    splits,
    windows_take_any_operation,
    empty_windows_complete,
    works_can_be_timed,
    works_report_why_they_have_no_time,
    works_report_to_a_hook,
    ranks_outside_a_new_group_are_recognised,
    the_default_timeout_is_torchs,
    groups_are_counted_apart,
    further_groups_share_the_memory_of_the_first,
    groups_of_one,
]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_groups(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_each_transport(transports: str, world_size: int) -> None:
    run_ranks(one_transport, world_size, backend=None, arguments=(transports,))


FIRST_USE = """
{imports}
import torch.distributed as dist
dist.init_process_group("pccl", store=dist.HashStore(), rank=0, world_size=1)
value = torch.ones(2)
dist.all_reduce(value)
assert value.tolist() == [1, 1]
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "imports",
    ["import torch", "import torch, pccl", "import pccl, torch", "import pccl; import torch"],
)
def test_works_however_it_is_imported(imports: str) -> None:
    script = FIRST_USE.format(imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

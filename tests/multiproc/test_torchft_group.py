# SPDX-License-Identifier: Apache-2.0
"""``pccl.torchft`` on a stub of torchft; make test-clients has torchft itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

import pccl
from support.client_stubs import install_torchft
from support.launch import new_store, run_ranks

pytestmark = pytest.mark.multiproc
LIMIT = timedelta(seconds=30)


def configured(quorum: int, rank: int, world_size: int, group: Any = None) -> Any:
    """Return the group in a quorum, as torchft configures it: with a prefix of its own."""
    if group is None:
        install_torchft()
        group = pccl.torchft.ProcessGroupPCCL(timeout=LIMIT)
    store = dist.PrefixStore(f"quorum{quorum}", new_store())
    group.configure(store, rank, world_size, quorum)
    return group


def total(group: Any) -> float:
    x = torch.ones(1)
    group._pg.allreduce([x], dist.AllreduceOptions()).wait()
    return x.item()


def quorums_follow_each_other(rank: int, world_size: int) -> None:
    group = configured(1, rank, world_size)
    assert (total(group), group.errored()) == (world_size, None)
    if rank == world_size - 1:
        group.shutdown()
        return
    group = configured(2, rank, world_size - 1, group)
    assert (total(group), group.errored()) == (world_size - 1, None)
    group.shutdown()
    assert group.errored() is None


def test_quorums_follow_each_other() -> None:
    run_ranks(quorums_follow_each_other, 3, backend=None)


def abort_is_an_error_until_the_next_quorum(rank: int, world_size: int) -> None:
    group = configured(1, rank, world_size)
    total(group)
    if rank == 0:
        group.abort()
        assert "quorum 1 was aborted" in str(group.errored())
    else:
        with pytest.raises(pccl.PeerLostError, match="torchft quorum 1"):
            total(group)
        assert "has ended after a failed operation" in str(group.errored())
    group = configured(2, rank, world_size, group)
    assert (total(group), group.errored()) == (world_size, None)
    group.shutdown()


def test_an_abort_is_an_error_until_the_next_quorum() -> None:
    run_ranks(abort_is_an_error_until_the_next_quorum, 2, backend=None)


def timeout_applies_at_once(rank: int, world_size: int) -> None:
    group = configured(1, rank, world_size)
    total(group)
    group.set_timeout(timedelta(milliseconds=100))
    if rank == 0:
        with pytest.raises(pccl.TimeoutError):
            group._pg.recv([torch.ones(1)], 1, 0).wait()
        new_store().set("over", "")
    else:
        new_store().wait(["over"], LIMIT)
    group.shutdown()


def test_a_timeout_applies_at_once() -> None:
    run_ranks(timeout_applies_at_once, 2, backend=None)


def ends_without_shutdown(rank: int, world_size: int) -> None:
    group = configured(1, rank, world_size)
    assert total(group) == world_size


def test_a_process_ends_without_shutdown() -> None:
    run_ranks(ends_without_shutdown, 2, backend=None)


def wrong_options(rank: int, world_size: int) -> None:
    install_torchft()
    with pytest.raises(TypeError, match=r"^options must be a pccl.Options, not dict$"):
        pccl.torchft.ProcessGroupPCCL(options={"transports": "shm"})


def test_wrong_options_are_refused() -> None:
    run_ranks(wrong_options, 1, backend=None)

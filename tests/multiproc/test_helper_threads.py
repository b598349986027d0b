# SPDX-License-Identifier: Apache-2.0
"""Helper threads take part in long calls: results, errors and ends are those without them."""

import os
import signal
import time
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from support.background import threads_of_pccl
from support.launch import RankError, new_store, not_on_gloo, run_ranks

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no such thing")]

HELPED = {"PCCL_COPY_THREADS": "3", "PCCL_TCP_THREADS": "3"}
LONG = 3_000_017  # elements
CALLS = 14  # the number of helpers changes within the first ones


def values(rank: int, call: int) -> "torch.Tensor":
    generator = torch.Generator().manual_seed(1000 * call + rank)
    return torch.randint(-(1 << 20), 1 << 20, (LONG,), generator=generator, dtype=torch.int32)


def long_calls_are_right(rank: int, world_size: int) -> int:
    for call in range(CALLS):
        inputs = [values(each, call) for each in range(world_size)]
        total = torch.stack(inputs).sum(dim=0, dtype=torch.int32)
        x = inputs[rank].clone()
        dist.all_reduce(x)
        assert torch.equal(x, total)
        parts = [torch.empty_like(x) for _ in range(world_size)]
        dist.all_gather(parts, inputs[rank])
        for part, wanted in zip(parts, inputs, strict=True):
            assert torch.equal(part, wanted)
        x = inputs[rank].clone()
        dist.broadcast(x, src=1)
        assert torch.equal(x, inputs[1])
        share = LONG // world_size
        mine = torch.empty(share, dtype=torch.int32)
        dist.reduce_scatter_tensor(mine, inputs[rank][: share * world_size].contiguous())
        assert torch.equal(mine, total[rank * share : (rank + 1) * share])
        got = torch.empty(share * world_size, dtype=torch.int32)
        dist.all_to_all_single(got, inputs[rank][: share * world_size].contiguous())
        for each in range(world_size):
            block = inputs[each][rank * share : (rank + 1) * share]
            assert torch.equal(got[each * share : (each + 1) * share], block)
    return sum(name == "pccl-helper" for name in threads_of_pccl())


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("transports", ["shm", "tcp", "all"])
def test_long_calls_are_right(transports: str, ranks: int) -> None:
    environment = HELPED | ({} if transports == "all" else {"PCCL_TRANSPORTS": transports})
    helpers = run_ranks(long_calls_are_right, ranks, environment=environment, timeout_s=120)
    assert all(1 <= count <= 3 for count in helpers), helpers


def none_help(rank: int, world_size: int) -> list[str]:
    x = torch.ones(LONG)
    for _ in range(CALLS):
        dist.all_reduce(x)
    return [name for name in threads_of_pccl() if name == "pccl-helper"]


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_none_help_where_the_settings_forbid_it(transports: str) -> None:
    environment = {"PCCL_TRANSPORTS": transports, "PCCL_COPY_THREADS": "0", "PCCL_TCP_THREADS": "0"}
    assert run_ranks(none_help, 2, environment=environment) == [[], []]


def limits_explained(rank: int, world_size: int) -> tuple[str, ...]:
    import pccl

    explanation = pccl.explain("all_reduce", "64MB")
    assert all(f"  {limit}" in str(explanation).splitlines() for limit in explanation.helpers)
    return explanation.helpers


def test_explain_shows_the_limits_and_their_reasons() -> None:
    cores = len(os.sched_getaffinity(0))
    (shown, _) = run_ranks(limits_explained, 2, environment={"PCCL_TCP_THREADS": "3"})
    copies, transfers = shown
    assert transfers == "transfers over links: up to 3 helper threads, as PCCL_TCP_THREADS is 3"
    assert copies.startswith("copies in shared memory: ")
    if cores == 2:
        assert copies == "copies in shared memory: no helper threads, as 2 ranks share 2 cores"
    (shown, _) = run_ranks(
        limits_explained, 2, environment={"PCCL_TRANSPORTS": "tcp", "PCCL_TCP_THREADS": "1"}
    )
    assert shown == ("transfers over links: up to 1 helper thread, as PCCL_TCP_THREADS is 1",)


def sums_of(rank: int, world_size: int) -> bytes:
    x = torch.randn(LONG, generator=torch.Generator().manual_seed(rank))
    sums = []
    for _ in range(CALLS):
        y = x.clone()
        dist.all_reduce(y)
        sums.append(y.numpy().tobytes())
    assert all(each == sums[0] for each in sums)
    return sums[0]


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_sums_have_the_same_bits_with_helpers_and_without(transports: str) -> None:
    found = {
        run_ranks(
            sums_of,
            3,
            environment={
                "PCCL_TRANSPORTS": transports,
                "PCCL_ALGORITHM": "all_reduce=ring" if transports == "tcp" else "",
                "PCCL_COPY_THREADS": threads,
                "PCCL_TCP_THREADS": threads,
            },
        )[0]
        for threads in ("0", "1", "3")
    }
    assert len(found) == 1


def calls_until_a_rank_is_killed(rank: int, world_size: int) -> Any:
    import pccl

    x = torch.ones(LONG)
    begin = time.monotonic()

    def call_on() -> None:
        while time.monotonic() < begin + 30:
            if rank == world_size - 1 and time.monotonic() > begin + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(x)

    with pytest.raises(pccl.PeerLostError) as caught:
        call_on()
    return caught.value.rank


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_a_killed_rank_is_named(transports: str) -> None:
    with pytest.raises(RankError) as caught:
        run_ranks(
            calls_until_a_rank_is_killed, 3, environment=HELPED | {"PCCL_TRANSPORTS": transports}
        )
    assert "rank 2" in str(caught.value)
    assert "SIGKILL" in str(caught.value) or "-9" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def aborted_within(rank: int, world_size: int) -> float:
    import pccl

    x = np.ones(LONG, np.float32)
    group = pccl.Communicator(rank=rank, world_size=world_size, rendezvous=new_store(), timeout=1.0)
    group.all_reduce(x)
    if rank == 1:
        time.sleep(4)
        return 0.0
    begin = time.monotonic()
    with pytest.raises(pccl.TimeoutError, match="rank 1"):
        group.all_reduce(x)
    return time.monotonic() - begin


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_deadlines_hold(transports: str) -> None:
    taken = run_ranks(
        aborted_within, 2, environment=HELPED | {"PCCL_TRANSPORTS": transports}, backend=None
    )
    assert 0.5 < taken[0] < 3.5

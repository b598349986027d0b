# SPDX-License-Identifier: Apache-2.0
"""Tensors that are expanded, read-only or mapped: done right, or refused on all ranks alike."""

from __future__ import annotations

import tempfile
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

import pccl
from support.launch import not_on_gloo, run_ranks
from support.torch_names import all_gather_single, reduce_scatter_single

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.multiproc, not_on_gloo("gives wrong data")]


def expanded(*values: float, by: int = 4) -> Tensor:
    """Return values that are repeated in memory: of shape [len(values), by]."""
    return torch.tensor(values).unsqueeze(1).expand(len(values), by)


def mapped(count: int) -> Tensor:
    """Return 0, 1, ... in a file that is mapped read-only."""
    with tempfile.NamedTemporaryFile() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.arange(count, dtype=np.float32).tofile(file.name)
        return torch.from_numpy(np.memmap(file.name, np.float32, "r"))


def alike(call: Callable[[Tensor], object], word: str, x: Tensor) -> None:
    """Every rank's own error names what it is about; the group goes on."""
    with pytest.raises(ValueError, match=word) as raised:
        call(x)
    assert len(str(raised.value).splitlines()) == 1
    ones = torch.ones(2)
    dist.all_reduce(ones)
    assert ones.tolist() == [dist.get_world_size()] * 2


def roots_only_read(rank: int, world_size: int) -> None:
    table = mapped(64).view(8, 8)
    for source in (table, table[:, :3], table.t(), table[:1, :1].expand(4, 5)):
        x = source if rank == 0 else torch.zeros(source.shape)
        dist.broadcast(x, src=0)
        assert torch.equal(x, source)
        work = dist.broadcast(x, src=0, async_op=True)
        work.wait()
        assert torch.equal(x, source)
        out = torch.zeros(source.shape)
        dist.scatter(out, [source] * world_size if rank == 0 else None, src=0)
        assert torch.equal(out, source)
        sums = torch.zeros(source.shape) if rank == 0 else source
        dist.reduce(sums, dst=0)
        assert rank or torch.equal(sums, source * (world_size - 1))
        dist.all_gather([torch.zeros(source.shape) for _ in range(world_size)], source)
        gathered = [torch.zeros(source.shape) for _ in range(world_size)]
        dist.gather(source, gathered if rank == 0 else None, dst=0)
        assert rank or all(torch.equal(each, source) for each in gathered)
    values = [table[:, 2]] if rank == 0 else [None]
    dist.broadcast_object_list(values, src=0)
    assert torch.equal(values[0], table[:, 2])  # type: ignore[arg-type]


def sums_repeat_where_all_ranks_repeat(rank: int, world_size: int) -> None:
    parameter = torch.ones(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(parameter.sum(), parameter)
    assert gradient.stride() == (0,)
    dist.all_reduce(gradient)
    assert gradient.tolist() == [world_size] * 4
    for factor in (1.0, 0.5):
        x = expanded(rank + 1.0, 2.0)
        op = dist.ReduceOp.SUM if factor == 1 else dist._make_nccl_premul_sum(factor)
        dist.all_reduce(x, op)
        total = world_size * (world_size + 1) / 2
        assert x.tolist() == [[total * factor] * 4, [2.0 * world_size * factor] * 4]
    x, y = expanded(1.0), expanded(2.0, by=3)
    work = dist.all_reduce(x, async_op=True)
    dist.all_reduce_coalesced([y])
    work.wait()
    assert (x.tolist(), y.tolist()) == ([[world_size] * 4], [[2 * world_size] * 3])
    # Another layout in which the same elements are one.
    x = torch.ones(3, 2)[:, :1].expand(3, 5) if rank else torch.ones(3, 1).expand(3, 5)
    dist.all_reduce(x)
    assert x.eq(world_size).all()


def what_repeats_may_come_for_what_repeats(rank: int, world_size: int) -> None:
    x = expanded(7.0 if rank == 0 else 0.0)
    dist.broadcast(x, src=0)
    assert x.tolist() == [[7.0] * 4]
    x = expanded(float(rank))
    dist.reduce(x, dst=0)
    assert rank or x.tolist() == [[world_size * (world_size - 1) / 2] * 4]
    outs = [expanded(0.0) for _ in range(world_size)]
    dist.all_gather(outs, expanded(float(rank)))
    assert [out[0, 0].item() for out in outs] == list(range(world_size))
    out = expanded(0.0)
    dist.scatter(out, [expanded(float(n)) for n in range(world_size)] if rank == 0 else None)
    assert out.tolist() == [[float(rank)] * 4]
    if rank == 0:
        dist.send(expanded(5.0), 1)
    elif rank == 1:
        dist.recv(x, 0)
        assert x.tolist() == [[5.0] * 4]


def contradictions_are_refused_on_all_ranks(rank: int, world_size: int) -> None:
    x = torch.arange(4.0)
    alike(
        lambda x: dist.all_gather([torch.zeros(1).expand(4) for _ in range(world_size)], x),
        r"pccl:all_gather failed: .*sizes \[4\] and strides \[0\] share",
        x,
    )
    whole = torch.zeros(1).expand(4 * world_size)
    alike(lambda x: all_gather_single(whole, x), "_all_gather_base failed: .*share", x)
    out = torch.zeros(1).expand(4)
    many = torch.ones(4 * world_size)
    alike(lambda _: reduce_scatter_single(out, many), "_reduce_scatter_base failed: .*share", x)
    alike(lambda _: dist.all_to_all_single(whole, many), "all_to_all failed: .*share", x)
    t = torch.zeros(4)
    alike(lambda x: dist.all_gather([t] * world_size, x), "all_gather failed: .*share", x)
    others = [torch.zeros(4) for _ in range(world_size - 2)]
    alike(lambda x: dist.all_gather([t, *others, t[:]], x), "all_gather failed: .*share", x)
    windows = torch.zeros(6).unfold(0, 3, 1)
    alike(dist.all_reduce, "all_reduce failed: .*share memory", windows)
    matrix = torch.zeros(4, world_size)
    dist.all_gather(list(matrix.t()), x)  # columns lie between each other, and share nothing
    assert torch.equal(matrix, x.unsqueeze(1).expand(4, world_size))


def read_only_outputs_are_refused_on_all_ranks(rank: int, world_size: int) -> None:
    x = mapped(8)
    alike(dist.all_reduce, "all_reduce failed: .*read-only memory.*x.clone", x)
    alike(dist.all_reduce, "all_reduce failed: .*read-only", x.view(2, 4)[:, :2])
    alike(
        lambda x: dist.all_gather([x] * world_size, torch.zeros(8)), "all_gather failed: .*share", x
    )
    alike(lambda x: all_gather_single(x, torch.zeros(8 // world_size)), "read-only", x[:8])
    alike(lambda x: reduce_scatter_single(x, torch.zeros(8 * world_size)), "read-only", x)
    alike(lambda x: dist.all_reduce_coalesced([torch.ones(3), x]), "read-only", x)
    alike(lambda x: dist.all_reduce(x, async_op=True).wait(), "read-only", x)  # type: ignore[union-attr]
    if rank == 1:
        with pytest.raises(ValueError, match=r"recv failed: .*read-only"):
            dist.recv(x, 0)
        dist.recv(torch.zeros(8), 0)
    elif rank == 0:
        dist.send(x, 1)


CHECKS = [
    roots_only_read,
    sums_repeat_where_all_ranks_repeat,
    what_repeats_may_come_for_what_repeats,
    contradictions_are_refused_on_all_ranks,
    read_only_outputs_are_refused_on_all_ranks,
]


@pytest.mark.parametrize("transports", ["", "tcp"])
@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_tensors(check: Callable[[int, int], None], world_size: int, transports: str) -> None:
    run_ranks(
        check, world_size, environment={"PCCL_TRANSPORTS": transports} if transports else None
    )


def one_alone(rank: int, world_size: int, kind: str, make: str) -> None:
    """The last rank alone has such a tensor; all get an error that names the collective."""
    odd = rank == world_size - 1
    bad = {
        "expanded": lambda n: torch.zeros(1).expand(n),
        "windows": lambda n: torch.zeros(n // 2 + 1).unfold(0, 2, 1)[: n // 2],
        "mapped": mapped,
    }[make]
    x = torch.arange(4.0)
    target = bad(4) if odd else torch.zeros(4)
    before = target.clone()
    calls: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(target),
        "all_gather": lambda: dist.all_gather(
            [target, *[torch.zeros(4) for _ in range(world_size - 1)]], x
        ),
        "reduce_scatter": lambda: dist.reduce_scatter(target, [x + n for n in range(world_size)]),
        "all_to_all": lambda: dist.all_to_all_single(
            bad(4 * world_size) if odd else torch.zeros(4 * world_size), x.repeat(world_size)
        ),
        "broadcast": lambda: dist.broadcast(x if rank == 0 else target, src=0),
        "scatter": lambda: dist.scatter(target, [x] * world_size if rank == 0 else None, src=0),
    }

    def call() -> None:
        calls[kind]()
        dist.barrier()  # who only gives has done its part, and learns of it with the next call

    with pytest.raises((ValueError, RuntimeError)) as raised:
        call()
    assert kind in str(raised.value), raised.value
    assert len(str(raised.value).splitlines()) == 1
    assert not odd or torch.equal(target, before)


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("make", ["expanded", "windows", "mapped"])
@pytest.mark.parametrize(
    "kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "scatter"]
)
def test_one_rank_alone(kind: str, make: str, world_size: int) -> None:
    run_ranks(one_alone, world_size, arguments=(kind, make))


def endless() -> Tensor:
    """Return a tensor whose copy is longer than any machine's memory."""
    return torch.ones(1).expand(1 << 45)


def copies_without_memory_are_refused_on_all_ranks(rank: int, world_size: int) -> None:
    why = "no memory for a copy of a tensor of sizes"
    calls: list[Callable[[], object]] = [
        lambda: dist.all_reduce(endless()),
        lambda: dist.all_reduce(endless(), async_op=True).wait(),
        lambda: dist.broadcast(endless(), 0),
        lambda: all_gather_single(torch.ones(1).expand(2 << 45), endless()),
        lambda: dist.all_to_all_single(endless(), endless()),
        lambda: dist.send(endless(), 1 - rank),
        lambda: dist.recv(endless(), 1 - rank),
    ]
    for call in calls:
        with pytest.raises(pccl.ResourceExhaustedError, match=why):
            call()
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [2.0] * 3
    if rank == 1:
        with pytest.raises(pccl.ResourceExhaustedError, match=why):
            dist.all_reduce(endless())
    else:
        with pytest.raises(pccl.MismatchError, match="refusing a buffer"):
            dist.all_reduce(x)


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_memory_for_a_copy_is_short(transports: str) -> None:
    run_ranks(
        copies_without_memory_are_refused_on_all_ranks,
        2,
        environment={"PCCL_TRANSPORTS": transports},
    )

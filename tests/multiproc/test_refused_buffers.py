# SPDX-License-Identifier: Apache-2.0
"""Buffers of ``pccl.Communicator`` that are read-only, strided or shared."""

from __future__ import annotations

import resource
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import pccl
import pccl.lang as pl
from pccl.communicator import PremulSum
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.multiproc
Array = np.ndarray[Any, Any]


def read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


def mapped(folder: Path) -> Array:
    """Return numbers in a file that is mapped read-only: who writes there is ended by a signal."""
    np.arange(6.0).tofile(folder / "numbers")
    return np.memmap(folder / "numbers", np.float64, "r")


def mapped_tensor() -> torch.Tensor:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch does: it cannot be written
        return torch.from_numpy(mapped(Path(folder)))


MAPPED = mapped_tensor()


def test_roots_only_read(tmp_path: Path) -> None:
    source = mapped(tmp_path)

    def body(comm: pccl.Communicator) -> None:
        is_root = comm.rank == 1
        for call in (comm.broadcast, lambda x, root: comm.broadcast(x, root, async_op=True).wait()):
            x = source if is_root else np.zeros(6)
            call(x, root=1)
            assert np.array_equal(x, source)
        comm.operator("broadcast", source if is_root else np.zeros(6), root=1).run()
        text = b"text" if is_root else bytearray(4)
        comm.broadcast(text, root=1)
        assert bytes(text) == b"text"
        out = np.zeros(3)
        comm.scatter(out, source if is_root else None, root=1)
        comm.reduce(np.zeros(6) if is_root else source, root=1)

    for algorithm in ("", *(f"broadcast={name}" for name in pccl.schedule.algorithms("broadcast"))):
        run_threads(tmp_path / algorithm, 2, body, algorithm=algorithm)


CALLS: dict[str, Callable[[pccl.Communicator, Any], object]] = {
    "all_reduce": lambda c, x: c.all_reduce(x),
    "all_gather": lambda c, x: c.all_gather(x, np.ones(len(x) // c.world_size)),
    "reduce_scatter": lambda c, x: c.reduce_scatter(x, np.ones(len(x) * c.world_size)),
    "all_to_all": lambda c, x: c.all_to_all(x, np.ones(len(x))),
    "async_all_reduce": lambda c, x: c.all_reduce(x, async_op=True).wait(),
}
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "read-only": (lambda: read_only(np.zeros(4)), "read-only: pass x.copy"),
    "strided": (lambda: np.zeros(8)[::2], "strided: pass numpy.ascontiguousarray"),
    "expanded": (lambda: np.broadcast_to(np.zeros(1), 4), "strided|read-only"),
    "mapped tensor": (lambda: MAPPED[:4], "read-only: pass a copy"),
    "expanded tensor": (lambda: torch.zeros(1, dtype=torch.float64).expand(4), "strided"),
}


def test_a_program_that_gives_the_root_its_block_back_does_not_write_there(tmp_path: Path) -> None:
    @pl.algorithm("broadcast", ranks=2)
    def there_and_back(c: pl.Program) -> None:
        c.input(0).copy_to(1).copy_to(0)

    capsule = there_and_back.build(name="there_and_back", sizes="1..")
    source = mapped(tmp_path)

    def body(comm: pccl.Communicator) -> None:
        comm.load(capsule)
        x = source if comm.rank == 0 else np.zeros(6)
        comm.broadcast(x, root=0)
        assert np.array_equal(x, source)

    run_threads(tmp_path, 2, body)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", CALLS)
def test_all_ranks_refuse_alike_and_go_on(tmp_path: Path, kind: str, bad: str) -> None:
    make, words = BAD[bad]

    def body(comm: pccl.Communicator) -> None:
        with pytest.raises(pccl.InvalidArgumentError, match=words) as raised:
            CALLS[kind](comm, make())
        assert kind.removeprefix("async_") in str(raised.value)
        x = np.ones(2)
        comm.all_reduce(x)
        assert x.tolist() == [2.0, 2.0]

    run_threads(tmp_path, 2, body)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", CALLS)
def test_one_rank_that_refuses_is_an_error_of_all(tmp_path: Path, kind: str, bad: str) -> None:
    make, words = BAD[bad]

    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.Error) as raised:
            CALLS[kind](comm, make() if comm.rank == 1 else np.zeros(4))
        return str(raised.value)

    good, refusing = run_threads(tmp_path, 2, body, ends_well=False)
    assert "rank 1 runs" in good
    assert "refusing a buffer" in good
    assert kind.removeprefix("async_") in good
    assert len(good.splitlines()) == 1
    assert any(word in refusing for word in words.split("|")), refusing


def test_outputs_that_share_memory_are_refused(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        x, y = np.arange(3.0), np.zeros(5)
        for out in ([y[:3], y[:3]], [y[:3], y[2:]]):
            with pytest.raises(pccl.InvalidArgumentError, match=r"all_gather: .*share memory"):
                comm.all_gather(out, x)
        assert not y.any()
        comm.all_gather([y[:2], y[2:4]], x[:2])
        assert y.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]

    run_threads(tmp_path, 2, body)


def endless() -> Array:
    """Return a view that is longer than any machine's memory."""
    return np.broadcast_to(np.zeros(1), 1 << 45)


ENDLESS_CALLS: dict[str, Callable[[pccl.Communicator], object]] = {
    "all_reduce": lambda c: c.all_reduce(endless()),
    "all_gather": lambda c: c.all_gather(endless(), np.ones(4)),
    "reduce_scatter": lambda c: c.reduce_scatter(endless(), np.ones(4)),
    "all_to_all": lambda c: c.all_to_all(endless(), np.ones(4)),
    "async_all_reduce": lambda c: c.all_reduce(endless(), async_op=True).wait(),
}


@pytest.mark.parametrize("kind", ENDLESS_CALLS)
def test_ranks_without_memory_for_a_refused_buffer_refuse_alike(tmp_path: Path, kind: str) -> None:
    def body(comm: pccl.Communicator) -> None:
        with pytest.raises(pccl.InvalidArgumentError, match=r"strided|read-only"):
            ENDLESS_CALLS[kind](comm)
        x = np.ones(2)
        comm.all_reduce(x)
        assert x.tolist() == [2.0, 2.0]

    run_threads(tmp_path, 2, body)


@pytest.mark.parametrize("kind", ENDLESS_CALLS)
def test_one_rank_without_memory_for_a_refused_buffer_is_an_error_of_all(
    tmp_path: Path, kind: str
) -> None:
    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.Error) as raised:
            ENDLESS_CALLS[kind](comm) if comm.rank == 1 else CALLS[kind](comm, np.zeros(4))
        return str(raised.value)

    good, refusing = run_threads(tmp_path, 2, body, ends_well=False)
    assert "ranks disagree about whether their buffers can be used" in good
    assert "rank 1 runs" in good
    assert "strided" in refusing or "read-only" in refusing


def test_one_rank_without_memory_for_a_copy_is_an_error_of_all() -> None:
    def scale(comm: pccl.Communicator) -> str:
        x = np.ones(1 << 24, np.float32)
        comm.barrier()
        if comm.rank == 1:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 1024, -1))
        try:
            comm.all_reduce(x, op=PremulSum(2.0))
        except pccl.Error as error:
            return f"{type(error).__name__}: {error}"
        return "no error"

    others, own = pccl.run(scale, ranks=2)
    assert others.startswith("MismatchError")
    assert "refusing a buffer" in others
    assert own == (
        "ResourceExhaustedError: all_reduce: this process has no 67108864 bytes of memory for a "
        "copy of a buffer"
    )

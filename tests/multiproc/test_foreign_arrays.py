# SPDX-License-Identifier: Apache-2.0
"""Arrays of others in ``pccl.Communicator``: of torch, ml_dtypes, DLPack, array interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
import torch

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.multiproc

REDUCED = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
MOVED = [*REDUCED, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]


class OnlyInterface:
    """An array that has ``__array_interface__``, and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any], **changes: object) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | changes


class OnlyDLPack:
    """An array that has DLPack, of version 0 or 1, and nothing else."""

    def __init__(self, array: Any, *, is_old: bool = False) -> None:
        self.array = array
        self.is_old = is_old

    def __dlpack__(self, **options: object) -> object:
        if self.is_old and options:
            raise TypeError("__dlpack__() takes no arguments")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
def test_tensors_are_reduced_in_place(tmp_path: Path, dtype: torch.dtype) -> None:
    given = [torch.arange(1000).remainder(7).add(rank).to(dtype) for rank in range(3)]

    def body(comm: pccl.Communicator) -> torch.Tensor:
        x = given[comm.rank].clone()
        address = x.data_ptr()
        comm.all_reduce(x, "max" if not dtype.is_complex else "sum")
        assert x.data_ptr() == address
        return x

    stacked = torch.stack(
        [x.to(torch.complex128 if dtype.is_complex else torch.float64) for x in given]
    )
    expected = (stacked.sum(0) if dtype.is_complex else stacked.amax(0)).to(dtype)
    for x in run_threads(tmp_path, 3, body):
        assert torch.equal(x, expected)


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_tensors_are_moved(tmp_path: Path, dtype: torch.dtype) -> None:
    bits = torch.arange(256, dtype=torch.int64).remainder(2).repeat(16).to(torch.uint8)
    root = bits.view(dtype).reshape(4, -1)

    def body(comm: pccl.Communicator) -> torch.Tensor:
        x = root.clone() if comm.rank == 1 else torch.zeros_like(root)
        comm.broadcast(x, 1)
        return x

    for x in run_threads(tmp_path, 2, body):
        assert torch.equal(x.view(torch.uint8), root.view(torch.uint8))


def test_tensors_gather_and_meet_arrays_of_numpy(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[float]:
        x = torch.full((2, 3), float(comm.rank))
        out = torch.empty(2, 2, 3)
        comm.all_gather(out, x)
        again = [torch.empty(6), np.empty(6, np.float32)]
        comm.all_gather(again, x.numpy() if comm.rank else x)
        assert again[0].tolist() + again[1].tolist() == out.flatten().tolist()
        peer = 1 - comm.rank
        sent = comm.send(x, peer, async_op=True)
        received = np.empty(6, np.float32)
        comm.recv(received, peer)
        sent.wait()
        assert (received == peer).all()
        return out.flatten().tolist()

    expected = [0.0] * 6 + [1.0] * 6
    assert run_threads(tmp_path, 2, body) == [expected, expected]


def test_bfloat16_of_ml_dtypes_and_of_torch_are_one_type(tmp_path: Path) -> None:
    values = np.linspace(-3, 3, 1000)

    def body(comm: pccl.Communicator) -> list[float]:
        x: Any
        if comm.rank == 0:
            x = values.astype(ml_dtypes.bfloat16)
        else:
            x = torch.from_numpy(values).to(torch.bfloat16)
        comm.all_reduce(x)
        return [float(each) for each in x]

    first, second = run_threads(tmp_path, 2, body)
    assert first == second
    assert first == (2 * torch.from_numpy(values).to(torch.bfloat16)).tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_float8_of_ml_dtypes_is_moved_and_not_reduced(tmp_path: Path, dtype: Any) -> None:
    def body(comm: pccl.Communicator) -> list[float]:
        x = np.arange(8).astype(dtype) if comm.rank == 0 else np.zeros(8, dtype)
        comm.broadcast(x)
        return [float(each) for each in x]

    assert run_threads(tmp_path, 2, body) == [[float(i) for i in range(8)]] * 2


@pytest.mark.parametrize(
    "make", [OnlyDLPack, lambda array: OnlyDLPack(array, is_old=True), OnlyInterface]
)
def test_any_array_with_a_protocol_will_do(make: Callable[[Any], Any]) -> None:
    comm = pccl.Communicator()
    array = np.zeros((2, 5))
    event = comm.recv(make(array), 0, async_op=True)
    comm.send(make(np.arange(10.0)), 0)
    event.wait()
    assert array.flatten().tolist() == list(range(10))


def test_memory_is_kept_while_an_operation_needs_it(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> float:
        if comm.rank == 0:
            event = comm.send(torch.full((1 << 20,), 3.0), 1, async_op=True)
            rest = [torch.zeros(1 << 20) for _ in range(4)]  # takes memory that was let go
            event.wait()
            return float(rest[0][0])
        x = np.zeros(1 << 20, np.float32)
        comm.recv(x, 0)
        return float(x.min())

    assert run_threads(tmp_path, 2, body) == [0.0, 3.0]


def tensor_with_gradient() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("strided tensor", lambda: torch.ones(4, 4).t(), r"strided; pass x\.contiguous\(\)"),
    ("tensor with gradient", tensor_with_gradient, "gradient"),
    ("tensor of another device", lambda: torch.ones(3, device="meta"), "gives no memory: .*meta"),
    (
        "unknown type",
        lambda: torch.ones(3).to(torch.float8_e4m3fnuz),
        "float8_e4m3fnuz.*x.view",
    ),
    ("unknown type of ml_dtypes", lambda: np.ones(3, ml_dtypes.float8_e3m4), "float8_e3m4.*view"),
    ("read-only interface", lambda: OnlyInterface(np.ones(3), data=(1, True)), "read-only"),
    ("strided interface", lambda: OnlyInterface(np.ones((4, 4)).T), "strided"),
    ("other byte order", lambda: OnlyInterface(np.ones(3), typestr=">f8"), "byte order"),
    ("unknown typestr", lambda: OnlyInterface(np.ones(3), typestr="|V80000000"), "V80000000"),
    (
        "no address",
        lambda: OnlyInterface(np.ones(3), data=None),
        "__array_interface__ without address",
    ),
    ("no shape", lambda: OnlyInterface(np.ones(3), shape=(-1, 8)), "a length of -1"),
    ("too long", lambda: OnlyInterface(np.ones(3), shape=(1 << 40, 1 << 40)), "which no array has"),
    (
        "no capsule",
        lambda: type(
            "X", (), {"__dlpack__": lambda self, **_: 3, "__dlpack_device__": lambda self: (1, 0)}
        )(),
        "capsule",
    ),
    ("no array", lambda: "text", "numpy array"),
]


@pytest.mark.parametrize(("make", "words"), [pytest.param(*r[1:], id=r[0]) for r in REFUSED])
def test_what_does_not_fit_is_refused_in_one_line(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=words) as raised:
        pccl.Communicator().all_reduce(make())
    assert len(str(raised.value).splitlines()) == 1


def test_memory_of_a_gpu_is_refused_with_what_to_do() -> None:
    class OnGpu(OnlyDLPack):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(pccl.InvalidArgumentError, match=r"memory of a device; pass a copy"):
        pccl.Communicator().all_reduce(OnGpu(np.ones(3)))


def test_a_read_only_array_is_sent_and_not_received_into() -> None:
    comm = pccl.Communicator()
    array = np.arange(3.0)
    array.flags.writeable = False
    out = np.zeros(3)
    event = comm.recv(out, 0, async_op=True)
    comm.send(OnlyDLPack(array), 0)
    event.wait()
    assert out.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(pccl.InvalidArgumentError, match="read-only"):
        comm.recv(OnlyDLPack(array), 0, async_op=True)


def test_float8_is_not_reduced_on_hosts(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> str:
        with pytest.raises(pccl.UnsupportedError) as raised:
            comm.all_reduce(torch.ones(3).to(torch.float8_e5m2))
        return str(raised.value)

    for output in run_threads(tmp_path, 2, body):
        assert "float8_e5m2" in output
        assert len(output.splitlines()) == 1

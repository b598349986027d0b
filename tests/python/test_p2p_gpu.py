# SPDX-License-Identifier: Apache-2.0
"""What a session makes of objects on GPUs, before any GPU is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pccl import InvalidArgumentError, UnsupportedError, p2p
from pccl.p2p.gpu_memory import ANY_GPU, gpu_memory_of, gpu_named, stream_named


class OnGpu:
    """As numba and cupy show their arrays."""

    def __init__(self, shape: tuple[int, ...], **others: Any) -> None:
        interface = {"shape": shape, "typestr": "<f4", "data": (0x7000_0000, False), "version": 3}
        self.__cuda_array_interface__ = interface | others


@pytest.mark.parametrize(
    ("device", "number"), [(None, None), ("cpu", None), ("cuda", ANY_GPU), ("cuda:12", 12)]
)
def test_devices_are_named_as_torch_does(device: str | None, number: int | None) -> None:
    assert gpu_named(device) == number


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cuda:1 ", "cuda:99999", "0"])
def test_other_names_are_refused(device: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a device is"):
        gpu_named(device)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6), (2, 3, 1)])
def test_contiguous_arrays_are_taken_whole(shape: tuple[int, ...]) -> None:
    strides = np.empty(shape, np.float32).strides
    assert gpu_memory_of(OnGpu(shape)) == (0x7000_0000, 24)
    assert gpu_memory_of(OnGpu(shape, strides=strides)) == (0x7000_0000, 24)


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (OnGpu((2, 3), strides=np.empty((2, 3), np.float32, "F").strides), "strided"),
        (OnGpu((3,), strides=(8,)), "strided"),
        (OnGpu((3,), data=(0x7000_0000, True)), "read-only"),
        (OnGpu((0,)), "0 bytes"),
    ],
)
def test_what_cannot_be_registered_is_refused(array: OnGpu, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        gpu_memory_of(array)


def test_memory_of_the_host_is_none_of_a_gpu() -> None:
    for buffer in (np.zeros(4), bytearray(4), pytest.importorskip("torch").zeros(4)):
        assert gpu_memory_of(buffer) is None


def test_without_cuda_a_session_reports_it_in_one_line() -> None:
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("this machine has a GPU")
    with p2p.Session("alone", transports="shm") as session:
        for register in (
            lambda: session.register(OnGpu((16,))),
            lambda: session.register(0x7000_0000, 64, device="cuda:0"),
        ):
            with pytest.raises(UnsupportedError, match=r"^memory of GPUs is not reached: .+$"):
                register()
        with pytest.raises(InvalidArgumentError, match="address alone"):
            session.register(np.zeros(4), device="cuda")


class Stream:
    """As torch shows its streams."""

    cuda_stream = 0x5000
    device_index = 3


def test_streams_are_those_of_torch_or_addresses() -> None:
    assert stream_named(None, "cpu") is None
    assert stream_named(Stream(), "cpu") == (0x5000, 3)
    assert stream_named(0x6000, "cuda:1") == (0x6000, 1)
    assert stream_named(0, "cuda:1") == (0, 1)  # the default one


@pytest.mark.parametrize(
    ("stream", "device", "why"),
    [("0", "cuda:0", "a stream is a"), (-1, "cuda:0", "a stream is a"), (7, "cpu", "the host's")],
)
def test_other_streams_are_refused(stream: object, device: str, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        stream_named(stream, device)


def test_reads_into_memory_of_the_host_keep_no_order_of_streams() -> None:
    with (
        p2p.Session("target", transports="shm") as a,
        p2p.Session("initiator", transports="shm") as b,
    ):
        b.load(a.connection_info())
        remote = b.import_memory("target", a.allocate(64).descriptor().serialize())
        local = b.register(np.zeros(64, np.uint8))
        plan = b.prepare(local, (0, 8, 16, 4), remote, (0, 8, 8, 4))
        for read in (
            lambda: b.read(local, remote, stream=Stream()),
            lambda: b.post_read(plan, [1, 2], stream=Stream()),
        ):
            with pytest.raises(
                UnsupportedError, match=r"^.*\(the local memory is the host's\): sync"
            ):
                read()
        b.post_read(plan).wait(20)


def test_memory_has_its_device() -> None:
    with p2p.Session("one", transports="shm") as session:
        assert session.allocate(64).device == "cpu"

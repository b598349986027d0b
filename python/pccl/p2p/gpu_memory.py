# SPDX-License-Identifier: Apache-2.0
"""GPU memory and streams of objects of other libraries."""

from __future__ import annotations

import math
import re
from typing import Any

from pccl.errors import InvalidArgumentError

__all__ = ["ANY_GPU", "gpu_memory_of", "gpu_named", "stream_named"]

#: The GPU on which the memory is located.
ANY_GPU = -1


def gpu_named(device: str | None) -> int | None:
    """Return the index in ``"cuda:1"``, :data:`ANY_GPU` for ``"cuda"``, None for a CPU."""
    if device is None or device == "cpu":
        return None
    found = re.fullmatch(r"cuda(?::(\d{1,4}))?", device)
    if found is None:
        raise InvalidArgumentError(f'a device is "cpu", "cuda" or "cuda:1", not {device!r}')
    return ANY_GPU if found[1] is None else int(found[1])


def gpu_memory_of(buffer: Any) -> tuple[int, int] | None:
    """Return address and bytes of an object on a GPU; None for other objects.

    Raises
    ------
    InvalidArgumentError
        The memory is strided, read-only, or has no bytes.
    """
    if getattr(buffer, "is_cuda", False) and hasattr(buffer, "data_ptr"):
        if not buffer.is_contiguous():
            raise InvalidArgumentError("a strided tensor is not registered; pass x.contiguous()")
        return _checked(buffer.data_ptr(), buffer.numel() * buffer.element_size())
    if hasattr(buffer, "is_cuda") or not hasattr(buffer, "__cuda_array_interface__"):
        return None
    array = buffer.__cuda_array_interface__
    address, is_read_only = array["data"]
    if is_read_only:
        raise InvalidArgumentError("read-only memory is not registered: peers may write to it")
    item = int(re.sub(r"\D", "", array["typestr"]))
    if not _is_contiguous(array["shape"], array.get("strides"), item):
        raise InvalidArgumentError("a strided array is not registered; pass a contiguous copy")
    return _checked(address, math.prod(array["shape"]) * item)


def stream_named(stream: Any, device: str) -> tuple[int, int] | None:
    """Return the address of a stream, and its GPU; None for no stream.

    Parameters
    ----------
    stream
        A ``torch.cuda.Stream``, or the address of a CUstream of ``device``.
    device
        Device of the local memory, ``"cpu"`` or ``"cuda:1"``.

    Raises
    ------
    InvalidArgumentError
        The stream is neither, or it is an address although the memory is host memory.
    """
    if stream is None:
        return None
    if hasattr(stream, "cuda_stream") and hasattr(stream, "device_index"):
        return stream.cuda_stream, stream.device_index
    if not isinstance(stream, int) or stream < 0:
        raise InvalidArgumentError(
            f"a stream is a torch.cuda.Stream or the address of a CUstream, not {stream!r}"
        )
    gpu = gpu_named(device)
    if gpu is None:
        raise InvalidArgumentError(
            "the address of a stream goes with local memory of its GPU, and this is the host's"
        )
    return stream, gpu


def _checked(address: int, nbytes: int) -> tuple[int, int]:
    if nbytes <= 0:
        raise InvalidArgumentError("there is no memory of 0 bytes to register")
    return address, nbytes


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, item: int) -> bool:
    if strides is None:
        return True
    expected = item
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True

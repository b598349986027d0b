# SPDX-License-Identifier: Apache-2.0
"""Transfer of pickled objects between ranks: the number of bytes, then the bytes."""

from __future__ import annotations

import array
import pickle
import threading
from typing import TYPE_CHECKING, Any

from pccl.errors import InvalidArgumentError, MismatchError

if TYPE_CHECKING:
    from datetime import timedelta

    from pccl._core import Communicator

__all__ = ["MOST_BYTES", "broadcast", "receive", "send"]

MOST_BYTES = 1 << 31
_NO_OBJECT = -1  # in place of the number of bytes, from a root whose object cannot be pickled

# The lock keeps the number and the bytes of an object adjacent if several threads send.
_sending = threading.Lock()


def send(
    comm: Communicator, value: object, peer: int, tag: int, timeout: float | timedelta | None
) -> None:
    """Implement ``Communicator.send_object``."""
    if peer == comm.rank:
        raise InvalidArgumentError(
            f"rank {peer} sends an object to itself: nobody would receive it"
        )
    data = _pickled(value)
    with _sending:
        length = comm.send(array.array("q", [len(data)]), peer, tag, async_op=True, timeout=timeout)
        content = comm.send(data, peer, tag, async_op=True, timeout=timeout)
    length.wait()
    content.wait()


def receive(
    comm: Communicator, peer: int | None, tag: int, timeout: float | timedelta | None
) -> Any:
    """Implement ``Communicator.recv_object``."""
    length = array.array("q", [0])
    event = comm.recv(length, peer, tag, async_op=True, timeout=timeout)
    event.wait()
    data = bytearray(_checked(length[0]))
    comm.recv(data, event.source, tag, timeout=timeout)
    return pickle.loads(data)


def broadcast(
    comm: Communicator, value: object, root: int, timeout: float | timedelta | None
) -> Any:
    """Implement ``Communicator.broadcast_object``."""
    is_root = comm.rank == root
    data = bytearray()
    if is_root:
        try:
            data = bytearray(_pickled(value))
        except Exception:
            comm.broadcast(array.array("q", [_NO_OBJECT]), root, timeout=timeout)
            raise
    length = array.array("q", [len(data)])
    comm.broadcast(length, root, timeout=timeout)
    if length[0] == _NO_OBJECT:
        raise InvalidArgumentError(
            f"rank {root}, the root, cannot pickle its object: its own error says why"
        )
    if not is_root:
        data = bytearray(_checked(length[0]))
    comm.broadcast(data, root, timeout=timeout)
    return value if is_root else pickle.loads(data)


def _pickled(value: object) -> bytes:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    if len(data) > MOST_BYTES:
        raise InvalidArgumentError(
            f"an object of {len(data)} bytes as pickle has it; at most {MOST_BYTES} can be sent"
        )
    return data


def _checked(length: int) -> int:
    if 0 < length <= MOST_BYTES:
        return length
    raise MismatchError(
        f"an object of {length} bytes was announced; 1 to {MOST_BYTES} can be received: has the"
        " other side called send_object or broadcast_object?"
    )

# SPDX-License-Identifier: Apache-2.0
"""Datagrams of the examination: pings, which may be padded, and their answers."""

from __future__ import annotations

import dataclasses
import struct

__all__ = ["HEADER_BYTES", "TOKEN_BYTES", "Packet", "decode", "encode"]

PING, PONG = 1, 2
TOKEN_BYTES = 16
_MAGIC = b"PCD1"
_FORM = struct.Struct(f"!4sBII{TOKEN_BYTES}sd")
HEADER_BYTES = _FORM.size


@dataclasses.dataclass(frozen=True)
class Packet:
    """A datagram; ``time`` is that of the sender's clock, in seconds since 1970."""

    kind: int
    sender: int
    number: int
    time: float


def encode(packet: Packet, token: bytes, size: int = HEADER_BYTES) -> bytes:
    """Return the bytes of a packet, padded to ``size``."""
    head = _FORM.pack(_MAGIC, packet.kind, packet.sender, packet.number, token, packet.time)
    return head.ljust(size, b"\0")


def decode(data: bytes, token: bytes) -> Packet | None:
    """Return the packet of a datagram; None if it is not of this job."""
    if len(data) < HEADER_BYTES:
        return None
    magic, kind, sender, number, its_token, time = _FORM.unpack_from(data)
    return Packet(kind, sender, number, time) if (magic, its_token) == (_MAGIC, token) else None

# SPDX-License-Identifier: Apache-2.0
"""Pings to one address: loss, round trip, difference of clocks, and the path's MTU."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import time
import typing

from pccl.diagnostics.doctor.job import packets
from pccl.diagnostics.doctor.job.dialling import family_of

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pinger", "Pings"]

_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PROBE = 10, 23, 3  # linux/in.h, linux/in6.h
_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
_WINDOW = 10
_LEAST_MTU = 576
_TRIES = 3


@dataclasses.dataclass
class Pings:
    """Result of a series of pings."""

    sent: int = 0
    answered: int = 0
    rtt_s: float | None = None
    offset_s: float | None = None  # the peer's clock minus this one's
    failure: str = ""  # the last reason why a ping could not be sent


class Pinger:
    """Sends pings to one address, which the kernel does not fragment."""

    def __init__(
        self,
        sender: int,
        token: bytes,
        peer: tuple[str, int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sender, self._token, self._clock = sender, token, clock
        self._number = 0
        self._family = family_of(peer[0])
        self._channel = socket.socket(self._family, socket.SOCK_DGRAM)
        level = socket.IPPROTO_IPV6 if self._family == socket.AF_INET6 else socket.IPPROTO_IP
        option = _IPV6_MTU_DISCOVER if self._family == socket.AF_INET6 else _IP_MTU_DISCOVER
        self._channel.setsockopt(level, option, _PROBE)
        self.failure = ""
        try:
            self._channel.connect(peer)
        except OSError as refusal:
            self.failure = os.strerror(refusal.errno or 0)

    def __enter__(self) -> Pinger:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    @property
    def local(self) -> str:
        """The address of this host from which the kernel sends to the peer."""
        return "" if self.failure else str(self._channel.getsockname()[0])

    def series(self, count: int, limit_s: float) -> Pings:
        """Send small pings, a few at a time, and count the answers."""
        pings = Pings(failure=self.failure)
        deadline = time.monotonic() + limit_s
        while pings.sent < count and time.monotonic() < deadline and not self.failure:
            window = {}
            for _ in range(min(_WINDOW, count - pings.sent)):
                pings.sent += 1
                number, begun = self._send(packets.HEADER_BYTES, pings)
                window[number] = begun
            # Answers that are late are not lost: the first window without any ends the series.
            before = pings.answered
            self._collect(window, pings, min(deadline, time.monotonic() + limit_s / 3))
            if pings.answered == before:
                break
        return pings

    def passes(self, mtu: int, limit_s: float = 0.1) -> bool:
        """Return whether a packet of ``mtu`` bytes, with its headers, reaches the peer."""
        size = max(mtu - _HEADERS[self._family], packets.HEADER_BYTES)
        for _ in range(_TRIES):
            pings = Pings()
            number, begun = self._send(size, pings)
            self._collect({number: begun}, pings, time.monotonic() + limit_s)
            if pings.answered:
                return True
        return False

    def largest_mtu(self, too_large: int) -> int:
        """Return the largest MTU below ``too_large`` at which packets pass."""
        low, high = _LEAST_MTU, too_large
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.passes(middle) else (low, middle)
        return low

    def _send(self, size: int, pings: Pings) -> tuple[int, float]:
        self._number += 1
        packet = packets.Packet(packets.PING, self._sender, self._number, 0.0)
        begun = self._clock()
        try:
            self._channel.send(packets.encode(packet, self._token, size))
        except OSError as refusal:  # no route, a packet above the MTU, or the peer has closed
            pings.failure = os.strerror(refusal.errno or 0)
        return self._number, begun

    def _collect(self, window: dict[int, float], pings: Pings, deadline: float) -> None:
        """Receive the answers to the pings of a window."""
        while window and (left := deadline - time.monotonic()) > 0:
            self._channel.settimeout(left)
            with contextlib.suppress(OSError):
                packet = packets.decode(self._channel.recv(2048), self._token)
                ended = self._clock()
                if packet is None or (begun := window.pop(packet.number, None)) is None:
                    continue
                pings.answered += 1
                if pings.rtt_s is None or ended - begun < pings.rtt_s:
                    pings.rtt_s = ended - begun
                    pings.offset_s = packet.time - (begun + ended) / 2

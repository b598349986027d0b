# SPDX-License-Identifier: Apache-2.0
"""The end of a host that answers the probes of others: a UDP socket and several TCP ports."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
import typing
from collections import Counter

from pccl.diagnostics.doctor.job import packets

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Responder", "sample_ports"]

PORTS = 16
_LONGEST_DATAGRAM = 65536
_TRIES = 64


class Responder:
    """Answers pings of a job and accepts connections, in a thread, until it is closed.

    Parameters
    ----------
    token
        Token of the job; other datagrams are ignored.
    ports
        TCP ports at which to listen; the next free one replaces a port in use.
    clock
        Returns the time that answers contain.
    """

    def __init__(
        self, token: bytes, ports: Iterable[int], clock: Callable[[], float] = time.time
    ) -> None:
        self._token = token
        self._clock = clock
        self._wake = os.pipe()
        self._datagrams = _bound(socket.SOCK_DGRAM, 0)
        self._listeners = [each for each in map(_listener, ports) if each is not None]
        self.received: Counter[int] = Counter()  # pings by the number of their sender
        self._thread = threading.Thread(target=self._run, name="pccl-doctor", daemon=True)
        self._thread.start()

    @property
    def udp_port(self) -> int:
        """The port that answers pings."""
        return int(self._datagrams.getsockname()[1])

    @property
    def tcp_ports(self) -> list[int]:
        """The ports that accept connections."""
        return [int(each.getsockname()[1]) for each in self._listeners]

    def close(self) -> None:
        """End the thread and close the ports."""
        os.write(self._wake[1], b"x")
        self._thread.join()
        for each in (self._datagrams, *self._listeners):
            each.close()
        for end in self._wake:
            os.close(end)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake[0], selectors.EVENT_READ, None)
            selector.register(self._datagrams, selectors.EVENT_READ, self._answer)
            for each in self._listeners:
                selector.register(each, selectors.EVENT_READ, lambda each=each: _accept(each))
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    key.data()

    def _answer(self) -> None:
        with contextlib.suppress(OSError):  # the peer has gone, or the queue is full
            data, sender = self._datagrams.recvfrom(_LONGEST_DATAGRAM)
            packet = packets.decode(data, self._token)
            if packet is None or packet.kind != packets.PING:
                return
            self.received[packet.sender] += 1
            answer = packets.Packet(packets.PONG, packet.sender, packet.number, self._clock())
            self._datagrams.sendto(packets.encode(answer, self._token), sender)


def sample_ports(first: int, last: int, count: int = PORTS) -> list[int]:
    """Return ports that are spread over the range from which the kernel chooses."""
    step = max((last - first) // count, 1)
    return [first + step // 2 + number * step for number in range(min(count, last - first + 1))]


def _accept(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the peer has gone
        listener.accept()[0].close()


def _listener(port: int) -> socket.socket | None:
    for offset in range(_TRIES):
        try:
            found = _bound(socket.SOCK_STREAM, min(port + offset, 65535))
        except OSError:
            continue
        found.listen(64)
        return found
    return None


def _bound(kind: socket.SocketKind, port: int) -> socket.socket:
    """Return a socket for both families, or for IPv4 on a host without IPv6."""
    with contextlib.ExitStack() as cleanup:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        found = cleanup.enter_context(socket.socket(family, kind))
        if both:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        found.setblocking(False)
        found.bind(("::" if both else "0.0.0.0", port))
        cleanup.pop_all()
        return found

# SPDX-License-Identifier: Apache-2.0
"""The TCP connection of two hosts that examine the RDMA network between them."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ChannelError", "PeerChannel", "connect", "listen", "split_address"]

_MAGIC = b"pccl doctor 1\n\0\0"
_NONCE_BYTES = 32
_MAC_BYTES = 32
_LONGEST_FRAME = 64 * 1024
_HANDSHAKE_S = 5.0
_RETRY_S = 0.2


class ChannelError(Exception):
    """The peer cannot be reached, does not prove the secret, or reports its own failure."""


class PeerChannel:
    """An authenticated connection; both ends exchange one frame at a time.

    Without a secret the key is empty, and any process can be the peer.
    """

    def __init__(self, connection: socket.socket, secret: bytes | None, *, listens: bool) -> None:
        self._socket = connection
        self._key = secret or b""
        self._listens = listens
        nonce = os.urandom(_NONCE_BYTES)
        try:
            connection.sendall(_MAGIC + nonce)
            greeting = self._receive(len(_MAGIC) + _NONCE_BYTES)
        except OSError as error:
            raise ChannelError(f"the peer ends the connection: {error}") from error
        if not greeting.startswith(_MAGIC):
            raise ChannelError("the peer is no `pccl doctor --rdma` of this version")
        other = greeting[len(_MAGIC) :]
        self._nonces = nonce + other if listens else other + nonce
        self._sent = self._received = 0

    def __enter__(self) -> PeerChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def limit(self, seconds: float) -> None:
        """Set the time limit of each later call."""
        self._socket.settimeout(seconds)

    def send(self, content: dict[str, Any]) -> None:
        """Send a frame."""
        payload = json.dumps(content).encode()
        mac = self._mac(self._listens, self._sent, payload)
        self._sent += 1
        try:
            self._socket.sendall(struct.pack("<I", len(payload)) + payload + mac)
        except OSError as error:
            raise ChannelError(f"the peer ends the connection: {error}") from error

    def receive(self) -> dict[str, Any]:
        """Receive a frame, and check that it comes from the peer."""
        try:
            (length,) = struct.unpack("<I", self._receive(4))
            if length > _LONGEST_FRAME:
                raise ChannelError(f"the peer sends {length} bytes; at most {_LONGEST_FRAME}")
            payload = self._receive(length)
            mac = self._receive(_MAC_BYTES)
        except OSError as error:
            raise ChannelError(f"nothing comes from the peer: {error}") from error
        if not hmac.compare_digest(mac, self._mac(not self._listens, self._received, payload)):
            raise ChannelError(
                "the peer does not prove the secret: PCCL_SECRET_FILE must name the same secret "
                "on both hosts, or none on both"
            )
        self._received += 1
        try:
            content = json.loads(payload)
        except ValueError as error:
            raise ChannelError("the peer sends a frame that is no JSON") from error
        if not isinstance(content, dict):
            raise ChannelError("the peer sends a frame that is no JSON object")
        return content

    def _mac(self, from_listener: bool, number: int, payload: bytes) -> bytes:
        head = struct.pack("<BQ", from_listener, number)
        return hmac.digest(self._key, self._nonces + head + payload, "sha256")

    def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise ChannelError("the peer has ended the connection")
            received += piece
        return received


def connect(address: str, secret: bytes | None, timeout: float) -> PeerChannel:
    """Connect to a host that listens, or begins to within ``timeout`` seconds."""
    host, port = split_address(address)
    end = time.monotonic() + timeout
    while True:
        try:
            left = max(_RETRY_S, end - time.monotonic())
            connection = socket.create_connection((host, port), timeout=left)
            break
        except socket.gaierror as error:
            raise ChannelError(f"the name {host!r} has no address: {error.strerror}") from error
        except OSError as error:
            if time.monotonic() + _RETRY_S >= end:
                raise ChannelError(
                    f"nothing answers at {address} ({error}): run `pccl doctor --rdma --listen "
                    f"{port}` there, and let TCP port {port} pass its firewall"
                ) from error
            time.sleep(_RETRY_S)
    return _greeted(connection, secret, listens=False, seconds=timeout)


def listen(
    port: int, secret: bytes | None, timeout: float, started: Callable[[int], None]
) -> PeerChannel:
    """Wait for one peer that proves the secret; ``started`` gets the port."""
    end = time.monotonic() + timeout
    refusal = ""
    with _server(port) as server:
        port = server.getsockname()[1]
        started(port)
        while (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                connection, _ = server.accept()
            except TimeoutError:
                break
            try:
                return _greeted(connection, secret, listens=True, seconds=min(_HANDSHAKE_S, left))
            except ChannelError as error:
                refusal = f"; the last connection was refused: {error}"
    raise ChannelError(
        f"no peer came within {timeout:g} s: run `pccl doctor --rdma --peer HOST:{port}` on the "
        f"other host{refusal}"
    )


def _greeted(
    connection: socket.socket, secret: bytes | None, *, listens: bool, seconds: float
) -> PeerChannel:
    """Return a channel whose peer has proven the secret."""
    with contextlib.ExitStack() as cleanup:
        cleanup.enter_context(connection)
        connection.settimeout(seconds)
        channel = PeerChannel(connection, secret, listens=listens)
        channel.send({"step": "connection"})
        channel.receive()
        cleanup.pop_all()
        return channel


@contextlib.contextmanager
def _server(port: int) -> Iterator[socket.socket]:
    try:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        server = socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise ChannelError(f"cannot listen at TCP port {port}: {error.strerror}") from error
    with server:
        yield server


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``"node7:4567"`` or ``"[fd00::1]:4567"``."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"--peer {address!r} is no HOST:PORT")
    return host, int(port)

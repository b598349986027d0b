# SPDX-License-Identifier: Apache-2.0
"""One HTTP POST with total limits on its time and on the bytes of the answer."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import urllib.parse

__all__ = ["RefusedError", "is_url", "post"]

_SHORTEST_S = 0.001  # a timeout of 0 would make a socket non-blocking


class RefusedError(Exception):
    """Answer with a status other than success; the text is the server's reason."""


def is_url(text: str) -> bool:
    """Return whether a text is an ``http://`` or ``https://`` URL with a host."""
    try:
        parts = urllib.parse.urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def post(url: str, body: bytes, *, seconds: float, most_bytes: int) -> bytes:
    """Send a POST, and return the body of the answer.

    ``seconds`` limits everything except the look-up of the host's name, which has the limits of the
    system's resolver. No proxy is used.

    Raises
    ------
    RefusedError
        The status is not a success.
    OSError
        The server is not reachable, or the answer takes longer.
    http.client.HTTPException
        The answer is not HTTP.
    ValueError
        The answer has more than ``most_bytes`` bytes.
    """
    deadline = time.monotonic() + seconds
    parts = urllib.parse.urlsplit(url)
    try:
        plain = _connect(parts, deadline)
    except TimeoutError as error:
        raise TimeoutError(f"no connection in {seconds:g} s") from error
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.sock = _BoundedSocket(plain, deadline)
    try:
        connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read(most_bytes + 1)
    except TimeoutError as error:
        raise TimeoutError(f"no complete answer arrived in {seconds:g} s") from error
    finally:
        plain.close()
    if answer.status // 100 != 2:
        raise RefusedError(text[:200].decode(errors="replace").strip() or answer.reason)
    if len(text) > most_bytes:
        raise ValueError(f"the answer has more than {most_bytes} bytes")
    return text


class _BoundedSocket:
    """Socket interface for http.client; each call is limited to the remaining time."""

    def __init__(self, plain: socket.socket, deadline: float) -> None:
        self._socket = plain
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._limit()
        self._socket.sendall(data)

    def recv_into(self, buffer: memoryview) -> int:
        self._limit()
        return self._socket.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self))

    def close(self) -> None:
        """Do nothing: http.client closes the socket before it reads the answer."""

    def _limit(self) -> None:
        self._socket.settimeout(_left(self._deadline))


class _Incoming(io.RawIOBase):
    def __init__(self, source: _BoundedSocket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        return self._source.recv_into(buffer)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return max(left, _SHORTEST_S)


def _connect(parts: urllib.parse.SplitResult, deadline: float) -> socket.socket:
    """Try all addresses of the host, in the resolver's order, and the handshake of TLS."""
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    plain = _connect_any([(family, address) for family, _, _, _, address in found], deadline)
    if not is_secure:
        return plain
    try:
        plain.settimeout(_left(deadline))
        return ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname)
    except BaseException:
        plain.close()
        raise


def _connect_any(addresses: list[tuple[int, tuple[object, ...]]], deadline: float) -> socket.socket:
    fault: OSError = OSError("the host has no address")
    for family, address in addresses:
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(_left(deadline))
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            plain.close()
            fault = error
        else:
            return plain
    raise fault

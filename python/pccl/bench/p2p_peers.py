# SPDX-License-Identifier: Apache-2.0
"""References for p2p over TCP: a ping-pong and a stream on plain sockets."""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import struct
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from pccl import _core
from pccl.bench.p2p import PATIENCE, rounds_in, start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Stream", "iperf3_stream", "round_trip", "socket_stream", "stream"]

_HERE = "127.0.0.1"
_BLOCK = 128 << 10  # bytes, the block size of iperf3
_LEAST_SECONDS = 1  # minimum duration of iperf3
_TO_START = 10.0  # seconds, for iperf3


class Stream(NamedTuple):
    """Result of one TCP stream within this host."""

    name: str
    bytes_per_second: float


def _as_bare(connection: socket.socket) -> socket.socket:
    """Set the socket to block in the kernel, with a timeout."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(PATIENCE), 0)
    )
    return connection


def _accepted(pipe: Connection) -> socket.socket:
    with socket.create_server((_HERE, 0)) as server:
        server.settimeout(PATIENCE)
        pipe.send(server.getsockname())
        return _as_bare(server.accept()[0])


def _connected(pipe: Connection) -> socket.socket:
    return _as_bare(socket.create_connection(pipe.recv(), PATIENCE))


def _echo(pipe: Connection) -> None:
    with _accepted(pipe) as connection:
        _core._echo(connection.fileno())


def _drain(pipe: Connection) -> None:
    """Receive all bytes, and acknowledge them."""
    into = bytearray(_BLOCK)
    with _accepted(pipe) as connection:
        while connection.recv_into(into):
            pass
        connection.sendall(b"x")


def round_trip(nbytes: int, seconds: float) -> float:
    """Return the median round trip time of ``nbytes`` to an echo process, timed in C++."""
    process, pipe = start(_echo)
    with _connected(pipe) as connection:
        descriptor = connection.fileno()
        once = min(_core._time_round_trips(descriptor, nbytes, 5))
        times = _core._time_round_trips(descriptor, nbytes, rounds_in(seconds, once))
    process.join()
    return statistics.median(times)


def socket_stream(seconds: float) -> Stream:
    """Return the rate of repeated sends of a block, until the other process has received all."""
    process, pipe = start(_drain)
    block = memoryview(bytes(_BLOCK))
    sent = 0
    with _connected(pipe) as connection:
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            connection.sendall(block)
            sent += len(block)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        taken = time.perf_counter() - begin
    process.join()
    return Stream("socket stream", sent / taken)


def _free_port() -> int:
    with socket.create_server((_HERE, 0)) as server:
        return int(server.getsockname()[1])


def iperf3_stream(seconds: float) -> Stream:
    """Return the rate of one stream of iperf3, over at least 1 second.

    Raises
    ------
    ValueError
        iperf3 does not run here.
    """
    where = ["-p", str(_free_port())]
    duration = max(_LEAST_SECONDS, round(seconds))
    server = subprocess.Popen(
        ["iperf3", "-s", "-1", "-B", _HERE, *where],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _TO_START
        while True:
            done = subprocess.run(
                ["iperf3", "-c", _HERE, *where, "-t", str(duration), "-J"],
                capture_output=True,
                text=True,
                check=False,
                timeout=duration + PATIENCE,
            )
            # iperf3 may exit with 0 without a connection.
            received = json.loads(done.stdout)["end"].get("sum_received")
            if done.returncode == 0 and received is not None:
                return Stream("iperf3", received["bits_per_second"] / 8)
            if time.monotonic() >= until:
                raise ValueError(f"iperf3 does not run here: {done.stdout[-300:]}")
            time.sleep(0.05)  # until its server listens
    finally:
        server.kill()
        server.wait()


def stream(seconds: float) -> Stream:
    """Return the rate of one stream of iperf3 if installed, otherwise of a plain socket."""
    return iperf3_stream(seconds) if shutil.which("iperf3") else socket_stream(seconds)

"""Ports for tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Give a port of the loopback interface at which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port

# SPDX-License-Identifier: Apache-2.0
"""HTTP server of a running job's counters, for Prometheus to scrape."""

from __future__ import annotations

import http.server
import socket
import threading
import typing

from pccl.diagnostics import prometheus
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from pccl.diagnostics.job_status import Job

__all__ = ["Exporter", "address_of"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CLIENT_SECONDS = 5.0  # that a client has for its request


def address_of(text: str) -> tuple[str, int]:
    """Parse "PORT", on 127.0.0.1, or "HOST:PORT".

    Raises
    ------
    ValueError
        It is neither.
    """
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 1 << 16 or (colon and not host):
        raise ValueError(f"'{text}' is neither a port, such as 9400, nor an address and a port")
    return host.strip("[]") or "127.0.0.1", int(port)


class Exporter(http.server.ThreadingHTTPServer):
    """Answers GET /metrics by a query of the job, one at a time.

    Parameters
    ----------
    address
        Where it listens; port 0 is any free one.
    query
        Returns the job's status.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], query: Callable[[], Job]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)
        self._query = query
        self._lock = threading.Lock()

    def metrics(self) -> str:
        """Return the text for a scrape. Raises as the query, and ValueError if nobody answers."""
        with self._lock:
            job = self._query()
        job.require_answer()
        return prometheus.exposition(job)


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _CLIENT_SECONDS

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, "the counters are at /metrics\n")
            return
        assert isinstance(self.server, Exporter)
        try:
            text = self.server.metrics()
        except (Error, OSError, ValueError) as error:
            self._answer(503, f"the job does not answer: {error}\n")
        else:
            self._answer(200, text)

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Scrapes are not logged."""

# SPDX-License-Identifier: Apache-2.0
"""etcd for tests: a real server of its own, and a stand-in that answers as it is told."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from pccl import p2p
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 30.0


def await_that(holds: Callable[[], bool]) -> None:
    """Wait until something holds; fail after half a minute."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "nothing has happened"
        time.sleep(0.05)


@contextlib.contextmanager
def real_server(folder: Path, certificate: str = "", key: str = "") -> Iterator[str]:
    """Give the endpoint of a server with its data in a folder; skip where there is no etcd."""
    program = shutil.which("etcd")
    if program is None:
        pytest.skip("no etcd is installed here: apt-get install etcd-server")
    scheme = "https" if certificate else "http"
    client, peer = f"{scheme}://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                *(program, "--data-dir", folder / "data", "--unsafe-no-fsync"),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"default={peer}"),
                *(("--cert-file", certificate, "--key-file", key) if certificate else ()),
            ],
            stdout=log,
            stderr=log,
        )
        try:
            await_that(lambda: _answers(client))
            yield client
        finally:
            server.kill()
            server.wait()


def _answers(endpoint: str) -> bool:
    try:
        p2p.EtcdStore(endpoint).keys()
    except pccl.UnavailableError as error:
        return "certificate verify failed" in str(error)
    return True


class StandIn:
    """Passes requests on to a real server, but for those that it answers itself.

    Attributes
    ----------
    answers
        By method (``"kv/txn"``): what is answered in place of the server; None: nothing at all.
    each_byte_s
        Seconds between the bytes of an answer.
    """

    def __init__(self, real: str) -> None:
        self.answers: dict[str, Any] = {}
        self.each_byte_s = 0.0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                requested = self.rfile.read(int(self.headers["Content-Length"]))
                outer._answer(self, real, requested)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(
        self, handler: http.server.BaseHTTPRequestHandler, real: str, requested: bytes
    ) -> None:
        method = handler.path.removeprefix("/v3/")
        status, text = 200, b""
        if method not in self.answers:
            status, text = _post(f"{real}/v3/{method}", requested)
        elif self.answers[method] is not None:
            reported = self.answers[method]
            text = reported if isinstance(reported, bytes) else json.dumps(reported).encode()
        else:
            return
        head = f"HTTP/1.0 {status} -\r\nContent-Length: {len(text)}\r\n\r\n".encode()
        with contextlib.suppress(OSError):
            for byte in (head + text) if self.each_byte_s else ():
                handler.wfile.write(bytes([byte]))
                time.sleep(self.each_byte_s)
            if not self.each_byte_s:
                handler.wfile.write(head + text)


def _post(url: str, body: bytes) -> tuple[int, bytes]:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method="POST")) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()

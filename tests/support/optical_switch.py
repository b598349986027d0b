# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an optical switch: NETCONF with confirmed commit, and faults on demand.

A ``Device`` is served in this process at a unix socket. sshd's subsystem ``netconf`` is this file
as a program, which passes bytes between its own standard input and output and that socket, so that
PCCL speaks to it through SSH as to a real one:

    Subsystem netconf "/usr/bin/python3 tests/support/optical_switch.py SOCKET"
"""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import socketserver
import sys
import threading
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NETCONF = "urn:ietf:params:xml:ns:netconf:base:1.0"
MODULE = "urn:pccl:yang:optical-switch"
PREFIX = "urn:ietf:params:netconf:"
_OPTIONS = ("candidate:1.0", "confirmed-commit:1.1", "rollback-on-error:1.0", "validate:1.1")
CAPABILITIES = ("base:1.0", "base:1.1", *(f"capability:{name}" for name in _OPTIONS))
END = b"]]>]]>"
CHUNK = re.compile(rb"\n#(\d+|#)\n")
HANG_S = 3.0  # longer than who asks has patience
DEAD_S = 1.5

Circuits = dict[int, int]


class Refused(Exception):
    """What an rpc-error says: its tag, and a message."""


class Hangup(Exception):
    """The session ends without an answer."""


class Device:
    """Circuits by ingress. ``apply`` is called with those that are there and those that come.

    ``faults`` names what happens at the next of an operation: ``{"commit": "reject"}``, ``"hang"``,
    ``"drop"``, ``"die"`` (nobody is served for a while), or ``"lie"``, an ok for nothing.
    """

    def __init__(self, apply: Callable[[Circuits, Circuits], None]) -> None:
        self.running: Circuits = {}
        self.faults: dict[str, str] = {}
        self.dark: set[int] = set()  # ingress ports to which no light comes
        self.pick_fault: Callable[[str], str] = lambda operation: self.faults.pop(operation, "")
        self._candidate: Circuits = {}
        self._before: Circuits | None = None  # of a commit that is not confirmed
        self._timer: threading.Timer | None = None
        self._unsure: int | None = None  # session of that
        self._holder: int | None = None  # of the lock
        self._apply = apply
        self._turn = threading.RLock()
        self._dead_until = 0.0

    @property
    def is_dead(self) -> bool:
        """Whether nobody is served."""
        return time.monotonic() < self._dead_until

    @property
    def is_unsure(self) -> bool:
        """Whether a commit waits to be confirmed."""
        return self._before is not None

    def answer(self, operation: ElementTree.Element, session: int) -> str:
        """Do it, and return what goes into the reply."""
        name = operation.tag.removeprefix(f"{{{NETCONF}}}")
        fault = self.pick_fault(name)
        if fault == "drop":
            raise Hangup
        if fault == "hang":
            time.sleep(HANG_S)
            raise Hangup
        if fault == "die":
            self._dead_until = time.monotonic() + DEAD_S
            raise Hangup
        if fault == "reject":
            raise Refused("operation-failed", "hardware refused")
        if fault == "lie":
            return "<ok/>"
        method = getattr(self, "_" + name.replace("-", "_"), None)
        if method is None:
            raise Refused("operation-not-supported", name)
        with self._turn:
            reported = method(operation, session)
        return reported or "<ok/>"

    def end(self, session: int) -> None:
        """Take back what the session has not confirmed, and its lock."""
        with self._turn:
            if self._unsure == session:
                self._revert()
            if self._holder == session:
                self._holder = None
                self._candidate = dict(self.running)

    def _lock(self, _operation: ElementTree.Element, session: int) -> None:
        if self._holder not in {None, session}:
            raise Refused("lock-denied", f"held by session {self._holder}")
        self._holder = session

    def _unlock(self, _operation: ElementTree.Element, session: int) -> None:
        if self._holder == session:
            self._holder = None

    def _discard_changes(self, _operation: ElementTree.Element, _session: int) -> None:
        self._candidate = dict(self.running)

    def _get_config(self, _operation: ElementTree.Element, _session: int) -> str:
        pairs = "".join(
            f"<pair><ingress>{ingress}</ingress><egress>{egress}</egress></pair>"
            for ingress, egress in sorted(self.running.items())
        )
        return f'<data><cross-connects xmlns="{MODULE}">{pairs}</cross-connects></data>'

    def _get(self, _operation: ElementTree.Element, _session: int) -> str:
        dark = "".join(f"<dark>{port}</dark>" for port in sorted(self.dark & set(self.running)))
        return f'<data><state xmlns="{MODULE}"><settled>true</settled>{dark}</state></data>'

    def _edit_config(self, operation: ElementTree.Element, _session: int) -> None:
        wanted = dict(self._candidate)
        for pair in operation.iter(f"{{{MODULE}}}pair"):
            ingress = int(pair.findtext(f"{{{MODULE}}}ingress", ""))
            if pair.get(f"{{{NETCONF}}}operation") == "delete":
                wanted.pop(ingress, None)
            else:
                wanted[ingress] = int(pair.findtext(f"{{{MODULE}}}egress", ""))
        if len(set(wanted.values())) < len(wanted):
            raise Refused("operation-failed", "an egress is used twice")
        self._candidate = wanted

    def _commit(self, operation: ElementTree.Element, session: int) -> None:
        timeout = operation.findtext(f"{{{NETCONF}}}confirm-timeout")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if operation.find(f"{{{NETCONF}}}confirmed") is None:
            self._before = self._unsure = None
        else:
            self._before = dict(self.running) if self._before is None else self._before
            self._unsure = session
            self._timer = threading.Timer(float(timeout or 600), self._time_out)
            self._timer.daemon = True
            self._timer.start()
        self._run(self._candidate)

    def _cancel_commit(self, _operation: ElementTree.Element, _session: int) -> None:
        self._revert()

    def _time_out(self) -> None:
        with self._turn:
            self._revert()

    def _revert(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        before, self._before, self._timer, self._unsure = self._before, None, None, None
        if before is not None:
            self._run(before)
            self._candidate = dict(before)

    def _run(self, wanted: Circuits) -> None:
        if wanted != self.running:
            self._apply(self.running, wanted)
        self.running = dict(wanted)


class _Session(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        if self.server.device.is_dead:
            return
        session = self.server.next_session()
        capabilities = "".join(f"<capability>{PREFIX}{name}</capability>" for name in CAPABILITIES)
        hello = (
            f'<hello xmlns="{NETCONF}"><capabilities>{capabilities}</capabilities>'
            f"<session-id>{session}</session-id></hello>"
        )
        try:
            self.wfile.write(hello.encode() + END)
            self._read_until(END)
            while self._serve_one(session):
                pass
        except (Hangup, OSError, EOFError):
            pass
        finally:
            self.server.device.end(session)

    def _serve_one(self, session: int) -> bool:
        rpc = ElementTree.fromstring(self._read_message())
        operation = rpc[0]
        try:
            inside = self.server.device.answer(operation, session)
        except Refused as error:
            tag, message = error.args
            inside = (
                f"<rpc-error><error-type>application</error-type><error-tag>{tag}</error-tag>"
                "<error-severity>error</error-severity>"
                f"<error-message>{message}</error-message></rpc-error>"
            )
        if operation.tag == f"{{{NETCONF}}}close-session":
            inside = "<ok/>"
        identity = rpc.get("message-id")
        reply = f'<rpc-reply xmlns="{NETCONF}" message-id="{identity}">{inside}</rpc-reply>'
        self.wfile.write(f"\n#{len(reply.encode())}\n{reply}\n##\n".encode())
        return operation.tag != f"{{{NETCONF}}}close-session"

    def _read_until(self, end: bytes) -> bytes:
        read = b""
        while not read.endswith(end):
            byte = self.rfile.read(1)
            if not byte:
                raise EOFError
            read += byte
        return read

    def _read_message(self) -> bytes:
        message = b""
        while True:
            head = self._read_until(b"\n#") + self._read_until(b"\n")
            found = CHUNK.search(head)
            if found is None:
                raise Hangup
            if found[1] == b"#":
                return message
            message += self.rfile.read(int(found[1]))


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, device: Device) -> None:
        super().__init__(str(path), _Session)
        self.device = device
        self._sessions = 0

    def next_session(self) -> int:
        self._sessions += 1
        return self._sessions


@contextlib.contextmanager
def serving(device: Device, path: Path) -> Iterator[None]:
    """Serve the device at a unix socket, in threads of this process."""
    with _Server(path, device) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def pass_bytes(path: str) -> None:
    """Between standard input, standard output, and a unix socket, until one of them ends."""
    with socket.socket(socket.AF_UNIX) as device, selectors.DefaultSelector() as selector:
        device.connect(path)
        selector.register(device, selectors.EVENT_READ)
        selector.register(sys.stdin.buffer.raw, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                is_device = key.fileobj is device
                data = device.recv(65536) if is_device else sys.stdin.buffer.raw.read(65536)
                if not data:
                    return
                if is_device:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                else:
                    device.sendall(data)


if __name__ == "__main__":
    pass_bytes(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""Groups that meet at a store whose server is stopped, or answers slowly."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch.distributed as dist

import pccl

SERVER = """
import sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""
BOUND_S = 60  # a call that has not ended by then never does


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Return the process of a store of torch, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def not_for_ever() -> Iterator[None]:
    """Fail, instead of hanging, where a call ignores its deadline and Ctrl-C."""
    import faulthandler

    faulthandler.dump_traceback_later(BOUND_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def ctrl_c_soon() -> Iterator[None]:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def client(port: int) -> Any:
    return dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)


def test_a_stopped_server_ends_a_group_at_its_timeout(
    server: tuple[subprocess.Popen[str], int],
) -> None:
    process, port = server
    store = client(port)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(pccl.UnavailableError, match="did not answer in time"):
        pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=1)


INIT = """
import os, signal, sys, threading
from datetime import timedelta
import torch.distributed as dist, pccl
port, server, timeout, interrupts = (int(each) for each in sys.argv[1:])
store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
os.kill(server, signal.SIGSTOP)
if interrupts:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
dist.init_process_group(
    "pccl", store=store, rank=0, world_size=2, timeout=timedelta(seconds=timeout)
)
"""


@pytest.mark.parametrize(
    ("timeout_s", "interrupts", "error"),
    [(1, 0, "did not answer in time"), (1000, 1, "KeyboardInterrupt")],
)
def test_a_stopped_server_ends_a_group_of_torch(
    server: tuple[subprocess.Popen[str], int], timeout_s: int, interrupts: int, error: str
) -> None:
    process, port = server
    arguments = [port, process.pid, timeout_s, interrupts]
    ended = subprocess.run(
        [sys.executable, "-c", INIT, *(str(each) for each in arguments)],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    assert ended.returncode != 0
    assert error in ended.stderr


def test_ctrl_c_ends_a_group_at_a_stopped_server(
    server: tuple[subprocess.Popen[str], int],
) -> None:
    process, port = server
    store = client(port)
    process.send_signal(signal.SIGSTOP)
    with ctrl_c_soon(), pytest.raises(KeyboardInterrupt):
        pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=1000)


@pytest.mark.parametrize("waits_for_ctrl_c", [False, True])
def test_a_stopped_store_of_the_agent(
    server: tuple[subprocess.Popen[str], int],
    monkeypatch: pytest.MonkeyPatch,
    waits_for_ctrl_c: bool,
) -> None:
    """The kernel accepts connections for a process that is stopped."""
    process, port = server
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }.items():
        monkeypatch.setenv(name, value)
    process.send_signal(signal.SIGSTOP)
    if waits_for_ctrl_c:
        with ctrl_c_soon(), pytest.raises(KeyboardInterrupt):
            pccl.Communicator(rendezvous="env://", timeout=1000)
    else:
        with pytest.raises(RuntimeError, match=r"did not answer|timed out"):
            pccl.Communicator(rendezvous="env://", timeout=1)


class SlowStore:
    """A dictionary that takes long for each answer."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s
        self.calls = 0
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        self._pause()
        self.values[key] = value

    def get(self, key: str) -> bytes | None:
        self._pause()
        return self.values.get(key)

    def add(self, key: str, number: int) -> int:
        self._pause()
        total = int(self.values.get(key, b"0")) + number
        self.values[key] = str(total).encode()
        return total

    def _pause(self) -> None:
        self.calls += 1
        time.sleep(self.pause_s)


def test_a_slow_store_is_asked_no_more_after_the_timeout() -> None:
    """Each answer comes in time, all of them do not."""
    store = SlowStore(0.3)
    with pytest.raises(pccl.Error):
        pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=1)
    assert store.calls < 20, "the calls of a join that goes on"


def test_ctrl_c_ends_a_group_at_a_slow_store() -> None:
    store = SlowStore(1000)
    with ctrl_c_soon(), pytest.raises(KeyboardInterrupt):
        pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=1000)


class BrokenStore(SlowStore):
    """A store whose server ends after the first answers."""

    def __init__(self, waits: bool) -> None:
        super().__init__(0)
        if waits:
            self.wait = self._lose

    def get(self, key: str) -> bytes | None:
        return self._lose(key)

    def _lose(self, *_: object) -> bytes | None:
        raise ConnectionError("the server is gone")


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_broken_store_is_no_late_rank(rank: int, waits: bool) -> None:
    with pytest.raises(pccl.UnavailableError, match="ConnectionError: the server is gone"):
        pccl.Communicator(rank=rank, world_size=2, rendezvous=BrokenStore(waits), timeout=3)


GIVES_UP = """
import sys, time
import torch.distributed as dist
import pccl

client = dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False, wait_for_workers=False)
end = time.monotonic() + 1.5

class LostStore:
    def __getattr__(self, name):
        if name not in ("set", "add", "get", "check") or time.monotonic() < end:
            return getattr(client, name)
        raise ConnectionError("the server is gone")

try:
    pccl.Communicator(rank=0, world_size=3, rendezvous=LostStore(), timeout=30)
except pccl.Error as error:
    print(type(error).__name__, flush=True)
sys.stdin.read()
"""


def test_a_rank_whose_process_lives_has_not_ended(
    server: tuple[subprocess.Popen[str], int],
) -> None:
    _, port = server
    with subprocess.Popen(
        [sys.executable, "-c", GIVES_UP, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        # The other answers are those of a process which has given up while it is asked.
        with pytest.raises(
            pccl.PeerLostError,
            match=r"rank 0 .*(was there, and has ended or given up before all|has left the group"
            r"|Connection reset by peer)",
        ):
            pccl.Communicator(rank=1, world_size=3, rendezvous=client(port), timeout=30)
        assert other.communicate("")[0] == "UnavailableError\n"


def test_torch_logs_nothing_while_a_rank_is_late(server: tuple[subprocess.Popen[str], int]) -> None:
    """A wait of torch that times out writes two lines each time."""
    code = f"""
import torch.distributed as dist, pccl
store = dist.TCPStore("127.0.0.1", {server[1]}, is_master=False, wait_for_workers=False)
pccl.Communicator(rank=0, world_size=2, rendezvous=store, timeout=2)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=BOUND_S
    )
    assert "TimeoutError" in ended.stderr
    assert "c10d" not in ended.stderr
    assert "waitForInput" not in ended.stderr

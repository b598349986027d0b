# SPDX-License-Identifier: Apache-2.0
"""Agents of NIXL over one of its plugins: ``python agents.py PLUGIN SCENARIO`` ends with status 0;
several scenarios have commas between them.

It asks of a backend what NIXL's own tests ask: transfers of memory, notifications behind them and
alone, a peer that dies and one that comes back. Run it with UCX to see that it asks for no more.
With ``AGENT_GPUS=2`` in the environment the memory is that of GPUs, each agent's on another one.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK = 4096
PATIENCE = 20.0
GPUS = int(os.environ.get("AGENT_GPUS", "0"))
MEMORY = "VRAM" if GPUS else "DRAM"
ROWS = 64


def package() -> Any:  # NIXL has no types for its bindings
    for name in ("nixl_cu12", "nixl_cu13"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{name}._api")
    sys.exit("no package of NIXL is here")


NIXL = package()
SHARED = NIXL.nixl_thread_sync_t.NIXL_THREAD_SYNC_RW
BINDINGS = importlib.import_module(NIXL.__name__.replace("_api", "_bindings"))


class Region:
    """Rows of blocks, in memory of the host or of a GPU."""

    def __init__(self, content: Any, gpu: int | None) -> None:
        self.memory = content
        self.device = gpu or 0
        self.address = content.ctypes.data
        if gpu is not None:
            import torch

            self.memory = torch.from_numpy(content).to(f"cuda:{gpu}")
            torch.cuda.synchronize(gpu)
            self.address = self.memory.data_ptr()

    def blocks(self, rows: range) -> list[tuple[int, int, int]]:
        return [(self.address + row * BLOCK, BLOCK, self.device) for row in rows]

    def fill(self, content: Any) -> None:
        if GPUS:
            import torch

            self.memory.copy_(torch.from_numpy(content))
            torch.cuda.synchronize(self.device)
        else:
            self.memory[:] = content

    def rows(self, start: int, stop: int, step: int = 1) -> Any:
        """Return a copy of them, in memory of the host."""
        return np.array((self.memory.cpu() if GPUS else self.memory)[start:stop:step])


class Agent:
    """An agent whose blocks lie in several registered memories."""

    numbers = itertools.count()

    def __init__(
        self, name: str, plugin: str, seed: int, regions: int = 3, sync: Any = None
    ) -> None:
        config = NIXL.nixl_agent_config(backends=[plugin], sync_mode=sync)
        self.nixl = NIXL.nixl_agent(name, config)
        random = np.random.default_rng(seed)
        gpu = next(Agent.numbers) % GPUS if GPUS else None
        self.regions = [Region(random_rows(random), gpu) for _ in range(regions)]
        spans = [(region.address, ROWS * BLOCK, region.device, "") for region in self.regions]
        self.registered = self.nixl.register_memory(spans, MEMORY)

    def blocks(self) -> list[tuple[int, int, int]]:
        """Every second block of each memory."""
        return [block for region in self.regions for block in region.blocks(range(0, ROWS, 2))]

    def transfer(
        self, op: str, remote: Any, peer: str, word: bytes, blocks: list[Any] | None = None
    ) -> None:
        local = self.nixl.get_xfer_descs(blocks or self.blocks(), MEMORY)
        handle = self.nixl.initialize_xfer(op, local, remote, peer, word)
        try:
            state = self.nixl.transfer(handle)
            until = time.monotonic() + PATIENCE
            while state == "PROC" and time.monotonic() < until:
                state = self.nixl.check_xfer_state(handle)
            assert state == "DONE", state
        finally:
            self.nixl.release_xfer_handle(handle)

    def hear(self, peer: str, word: bytes) -> None:
        received: list[bytes] = []

        def look() -> bool:
            received.extend(self.nixl.get_new_notifs().get(peer, []))
            return bool(received)

        await_that(look)
        assert received == [word], received


def await_that(look: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < until, "nothing has happened"


def pair(plugin: str) -> tuple[Agent, Agent, Any]:
    a, b = Agent("agent a", plugin, 1), Agent("b", plugin, 2)
    assert b.nixl.add_remote_agent(a.nixl.get_agent_metadata()) == b"agent a"
    return a, b, b.nixl.get_xfer_descs(a.blocks(), MEMORY)


def random_rows(random: np.random.Generator) -> Any:
    return random.integers(0, 256, (ROWS, BLOCK), dtype=np.uint8)


def same_blocks(a: Agent, b: Agent) -> bool:
    pairs = zip(a.regions, b.regions, strict=True)
    return all(np.array_equal(x.rows(0, ROWS, 2), y.rows(0, ROWS, 2)) for x, y in pairs)


def read(plugin: str) -> None:
    a, b, remote = pair(plugin)
    untouched = [region.rows(1, ROWS, 2) for region in b.regions]
    b.transfer("READ", remote, "agent a", b"have read")
    assert same_blocks(a, b)
    for region, before in zip(b.regions, untouched, strict=True):
        assert np.array_equal(region.rows(1, ROWS, 2), before), "other blocks changed"
    a.hear("b", b"have read")


def write(plugin: str) -> None:
    a, b, remote = pair(plugin)
    for word in (b"first", b"second"):
        b.regions[0].fill(random_rows(np.random.default_rng(len(word))))
        b.transfer("WRITE", remote, "agent a", word)
        a.hear("b", word)
        assert same_blocks(a, b), "the word came before its bytes"


def local(plugin: str) -> None:
    agent = Agent("alone", plugin, 1, regions=1)
    region = agent.regions[0]
    descriptors = [
        agent.nixl.get_xfer_descs(region.blocks(rows), MEMORY) for rows in (range(8), range(8, 16))
    ]
    handle = agent.nixl.initialize_xfer("WRITE", *descriptors, "alone", b"")
    agent.nixl.transfer(handle)
    await_that(lambda: agent.nixl.check_xfer_state(handle) == "DONE")
    assert np.array_equal(region.rows(0, 8), region.rows(8, 16))
    agent.nixl.release_xfer_handle(handle)


def notifications(plugin: str) -> None:
    a, b, _ = pair(plugin)
    a.nixl.add_remote_agent(b.nixl.get_agent_metadata())
    for word in (b"x", b"\x00\xff binary \x00", b"y" * 8000):
        b.nixl.send_notif("agent a", word)
        a.hear("b", word)
        a.nixl.send_notif("b", word)
        b.hear("agent a", word)


def threads(plugin: str) -> None:
    """Each of several threads posts and checks transfers of its own blocks, of one agent."""
    a, b = (Agent(name, plugin, seed, sync=SHARED) for name, seed in (("agent a", 1), ("b", 2)))
    b.nixl.add_remote_agent(a.nixl.get_agent_metadata())
    blocks = list(zip(b.blocks(), a.blocks(), strict=True))

    def move(mine: list[Any]) -> None:
        for _ in range(20):
            here, there = ([pair[side] for pair in mine] for side in (0, 1))
            b.transfer("READ", b.nixl.get_xfer_descs(there, MEMORY), "agent a", b"", here)

    with futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(move, blocks[part::4]) for part in range(4)]:
            done.result(PATIENCE)
    assert same_blocks(a, b)


def serve(plugin: str) -> None:
    agent = Agent("server", plugin, int(sys.argv[3]))
    print(agent.nixl.get_agent_metadata().hex(), json.dumps(agent.blocks()), flush=True)
    sys.stdin.read()


@contextlib.contextmanager
def server(plugin: str, seed: int) -> Iterator[tuple[subprocess.Popen[bytes], bytes, Any]]:
    command = [sys.executable, __file__, plugin, "serve", str(seed)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        while b" [[" not in (line := process.stdout.readline()):
            assert line, "the server has ended"
        metadata, blocks = line.split(b" ", 1)
        triples = [tuple(each) for each in json.loads(blocks)]
        yield process, bytes.fromhex(metadata.decode()), triples
    finally:
        process.kill()
        process.wait()


def death(plugin: str) -> None:
    """A peer is killed and comes back under its name."""
    b = Agent("b", plugin, 9)
    for seed in (1, 2, 3):
        expected = random_rows(np.random.default_rng(seed))[::2]
        with server(plugin, seed) as (process, metadata, blocks):
            b.nixl.add_remote_agent(metadata)
            remote = b.nixl.get_xfer_descs(blocks, MEMORY)
            b.transfer("READ", remote, "server", b"")
            assert np.array_equal(b.regions[0].rows(0, ROWS, 2), expected)
            process.kill()
            process.wait()
            try:
                for _ in range(100):
                    b.transfer("READ", remote, "server", b"")
                raise AssertionError("transfers with a dead peer went on")
            except BINDINGS.nixlRemoteDisconnectError:
                b.nixl.remove_remote_agent("server")  # NIXL itself keeps its connection info


if __name__ == "__main__":
    for scenario in sys.argv[2].split(","):
        globals()[scenario](sys.argv[1])
    print("ok")

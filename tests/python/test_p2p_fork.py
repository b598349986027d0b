# SPDX-License-Identifier: Apache-2.0
"""Every public member of what pccl.p2p has, in a child of fork(): the parent must not notice."""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl import p2p

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12) and os.environ.get("PYTHONWARNINGS") == "error",
    reason="Python warns of fork() where there are threads",
)

NBYTES = 4096
PATIENCE = 20.0
CHILD_LIMIT_S = 60

#: Former names of other members.
FORMER = {"release", "word"}

#: Members that a child has as its parent has them: what never changes, and how things end there.
EVERYWHERE = {
    "Session.name",
    "Session.incarnation",
    "Session.connection_info",
    "Session.close",
    "Session.prepare",
    "Work.cancel",
    "Transfer.cancel",
    "Message.cancel",
    "Message.tag",
    "Memory.nbytes",
    "Memory.device",
    "Memory.descriptor",
    "Memory.array",
    "RemoteMemory.nbytes",
    "RemoteMemory.owner",
    "Plan.nbytes",
    "Plan.device",
    "LocalSlice.memory",
    "LocalSlice.offset",
    "LocalSlice.nbytes",
    "RemoteSlice.memory",
    "RemoteSlice.offset",
    "RemoteSlice.nbytes",
    "Descriptor.serialize",
    "Notification.peer",
    "Notification.payload",
    "Notification.count",
    "Notification.index",
    "WorkStats.nbytes",
    "WorkStats.blocks",
    "WorkStats.pieces",
    "WorkStats.seconds",
    "WorkStats.path",
    "WorkStats.reasons",
    "WorkStats.lanes",
    "WorkStats.lane_reason",
    "EtcdStore.close",
}


class World:
    """Two sessions with everything that they hand out, some of it under way."""

    def __init__(self, transports: str, folder: Path) -> None:
        self.a = p2p.Session("a", transports=transports)
        self.b = p2p.Session("b", transports=transports)
        self.a.load(self.b.connection_info())
        self.b.load(self.a.connection_info())
        self.theirs = np.arange(NBYTES, dtype=np.uint8)
        self.mine = np.zeros(NBYTES, np.uint8)
        self.of_a = self.a.register(self.theirs)
        self.of_b = self.b.register(self.mine)
        self.a.publish("cache", self.of_a)
        self.remote = self.b.fetch("a", "cache", PATIENCE)
        self.plan = self.b.prepare(self.of_b, (0, 64, 64, 4), self.remote, (0, 64, 64, 4))
        self.work = self.b.read(self.of_b[0:64], self.remote[0:64])
        self.work.wait(PATIENCE)
        self.transfer = self.b.transfer("a")
        self.message = self.transfer.post_recv(self.of_b, 0, 64, tag=3)
        self.store = p2p.RendezvousStore(f"file://{folder}/store", host=True)
        self.directory = p2p.Directory(self.b, self.store)
        self.directory.publish(cache=self.of_b)
        torch = pytest.importorskip("torch.distributed")
        self.torch_store = p2p.TorchStore(torch.HashStore())
        self.torch_store.put("key", b"value")
        self.etcd = p2p.EtcdStore("http://127.0.0.1:9", timeout=0.2)
        #: One of each public class that has objects.
        self.objects = {
            "Session": self.b,
            "Message": self.message,
            "Work": self.work,
            "Transfer": self.transfer,
            "Memory": self.of_b,
            "RemoteMemory": self.remote,
            "LocalSlice": self.of_b[0:64],
            "RemoteSlice": self.remote[0:64],
            "Descriptor": self.of_b.descriptor(),
            "Plan": self.plan,
            "WorkStats": self.work.stats(),
            "Notification": p2p.Notification("a", b"word"),
            "Directory": self.directory,
            "RendezvousStore": self.store,
            "TorchStore": self.torch_store,
            "EtcdStore": self.etcd,
        }

    def argument(self, member: str, name: str) -> Any:
        """Return what a member takes by that name."""
        if member == "Session.register":
            return bytearray(8)
        if member.startswith("Session.prepare"):
            return {"local": self.of_b, "remote": self.remote}.get(name, (0, 64, 64, 4))
        return {
            "peer": "a",
            "timeout": 0.3,
            "info": self.a.connection_info(),
            "nbytes": 64,
            "descriptor": self.of_a.descriptor().serialize(),
            "name": "cache",
            "memory": self.of_b,
            "local": self.of_b[0:64],
            "remote": self.remote[0:64],
            "plan": self.plan,
            "payload": b"word",
            "offset": 0,
            "key": "b",
            "value": b"other",
        }[name]

    def members(self) -> list[str]:
        """Return all public ones, as ``Class.member``."""
        return [
            f"{kind}.{name}"
            for kind, each in self.objects.items()
            for name in dir(each)
            if not name.startswith("_") and name not in FORMER
        ]

    def call(self, member: str) -> object:
        """Call it with all that it must be given, or look at it."""
        kind, _, name = member.partition(".")
        owner = self.objects[kind]
        value = getattr(owner, name)
        if not callable(value) or member == "Notification.payload":
            return value
        if kind == "Notification":
            return value("a")
        wanted = inspect.signature(value).parameters.values()
        arguments = {
            each.name: self.argument(member, each.name)
            for each in wanted
            if each.kind is not each.VAR_KEYWORD
            and (each.default is each.empty or each.name == "timeout")
        }
        if member == "Directory.publish":
            arguments["cache"] = self.of_b
        return value(**arguments)

    def check_undisturbed(self) -> None:
        """Everything that was under way, and is registered and published, still is."""
        self.a.notify("b", b"after")
        assert ("a", b"after") in self.b.notifications(PATIENCE)
        self.a.transfer("b").post_send(self.of_a, 64, 64, tag=3)
        self.message.wait(PATIENCE)
        np.testing.assert_array_equal(self.mine[:64], self.theirs[64:128])
        again = self.b.fetch("a", "cache", PATIENCE)
        self.b.read(self.of_b[0:64], again[128:192]).wait(PATIENCE)
        np.testing.assert_array_equal(self.mine[:64], self.theirs[128:192])
        self.b.post_read(self.plan).wait(PATIENCE)
        assert self.a.peers() == ["b"]
        assert self.b.peers() == ["a"]
        assert self.directory.names() == ["b"]
        assert self.torch_store.get("key") == b"value"
        self.of_b[0:64]
        self.of_b.deregister()

    def close(self) -> None:
        self.a.close()
        self.b.close()


def in_child(body: Callable[[], Any]) -> Any:
    """Return what a child of fork() makes of it, as JSON."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CHILD_LIMIT_S)
        try:
            output = json.dumps(body())
        except BaseException as error:  # the parent reads of it
            output = json.dumps(f"{type(error).__name__}: {error}")
        os.write(writer, output.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child has ended with {status}"
    return json.loads(answer)


@pytest.fixture(params=["shm", "tcp"])
def world(request: pytest.FixtureRequest, tmp_path: Path):
    made = World(request.param, tmp_path)
    yield made
    made.close()


def test_every_class_is_looked_at(world):
    kinds = {
        name
        for name in p2p.__all__
        if inspect.isclass(getattr(p2p, name)) and name != "KeyStore"  # a protocol
    }
    assert kinds == set(world.objects)
    assert set(world.members()) >= EVERYWHERE


def test_no_member_acts_in_a_child(world):
    def outcomes() -> dict[str, str]:
        found = {}
        for member in world.members():
            try:
                world.call(member)
                found[member] = "returns"
            except pccl.UnavailableError as error:
                is_told = "the process that this one was forked from" in str(error)
                found[member] = "refuses" if is_told else f"UnavailableError: {error}"
            except Exception as error:  # it is compared
                found[member] = f"{type(error).__name__}: {error}"
        return found

    found = in_child(outcomes)
    expected = {
        member: "returns" if member in EVERYWHERE else "refuses" for member in world.members()
    }
    assert found == expected
    world.check_undisturbed()


def test_a_child_that_drops_everything_ends_nothing(world):
    def drop() -> str:
        world.__dict__.clear()
        return "dropped"

    assert in_child(drop) == "dropped"
    world.check_undisturbed()


def test_a_child_takes_no_words_of_a_parent_that_is_slow(world):
    words = [b"%4d" % number + bytes([number]) * 10_000 for number in range(200)]

    def take() -> int:
        taken = 0
        until = time.monotonic() + 1
        while time.monotonic() < until:
            taken += len(world.b.notifications(0.0))
        return taken

    for word in words[:100]:
        world.a.notify("b", word)
    assert in_child(take) == 0
    for word in words[100:]:
        world.a.notify("b", word)
    received: list[bytes] = []
    while len(received) < len(words):
        some = world.b.notifications(PATIENCE)
        assert some, f"{len(received)} words of {len(words)}"
        received += [each.payload for each in some]
    assert received == words

# SPDX-License-Identifier: Apache-2.0
"""Network namespaces as hosts: two joined by a veth pair, as by a cable, or more by a bridge."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERFACE = "veth0"
MOST_HOSTS = 254
BURST = "1600"  # bytes: little goes faster than a port is
ADDRESSES = tuple(f"10.111.0.{host}/24" for host in range(1, MOST_HOSTS + 1))


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextlib.contextmanager
def joined_namespaces(count: int = 2, mbit: int | None = None) -> Iterator[tuple[str, ...]]:
    """Give the names of namespaces, each with `INTERFACE`; removes them however it ends.

    Two are joined by a cable, more by a switch, and so are two of whose ports ``mbit`` is the rate,
    each way. Exits with a word on why where the machine does not allow it.
    """
    if os.geteuid() != 0:
        sys.exit("making network namespaces needs root")
    names = tuple(f"pccl-{os.getpid()}-{number}" for number in range(count))
    with contextlib.ExitStack() as stack:
        for name in names:
            _make(name, stack)
        if count == 2 and mbit is None:
            pair = ("type", "veth", "peer", "name", INTERFACE, "netns", names[1])
            _ip("link", "add", INTERFACE, "netns", names[0], *pair)
        else:
            switch = f"pccl-{os.getpid()}-switch"
            _make(switch, stack)
            _plug_in(names, switch, mbit)
        for name, address in zip(names, ADDRESSES, strict=False):
            _ip("-n", name, "address", "add", address, "dev", INTERFACE)
            _ip("-n", name, "link", "set", INTERFACE, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        for name in names:
            _await_cable(name)
        yield names


def _make(namespace: str, stack: contextlib.ExitStack) -> None:
    if subprocess.run(["ip", "netns", "add", namespace], check=False).returncode:
        sys.exit("this machine does not let us make network namespaces (a container?)")
    stack.callback(_ip, "netns", "delete", namespace)


def _plug_in(names: tuple[str, ...], switch: str, mbit: int | None) -> None:
    """Give each of the namespaces an end of a cable whose other end is in a bridge."""
    _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
    _ip("-n", switch, "link", "set", "bridge", "up")
    for number, name in enumerate(names):
        port = f"port{number}"
        peer = ("type", "veth", "peer", "name", port, "netns", switch)
        _ip("link", "add", INTERFACE, "netns", name, *peer)
        _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        if mbit is not None:
            _shape(name, INTERFACE, mbit)
            _shape(switch, port, mbit)


def _shape(namespace: str, device: str, mbit: int) -> None:
    shape = ("tbf", "rate", f"{mbit}mbit", "burst", BURST, "latency", "400ms")
    command = ["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *shape]
    subprocess.run(command, check=True)


def _await_cable(namespace: str) -> None:
    """The kernel tells of a new link's state up to a second later."""
    command = ["ip", "-n", namespace, "-brief", "link", "show", INTERFACE]
    for _ in range(500):
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if "LOWER_UP" in shown and " UP " in shown:
            return
        time.sleep(0.01)
    sys.exit(f"{INTERFACE} of {namespace} did not come up")


def enter(namespace: str) -> None:
    """Move this process, before PCCL looks where it is; os.setns came with Python 3.12."""
    new_network = 0x40000000  # CLONE_NEWNET
    with Path("/run/netns", namespace).open() as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), new_network) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def commands_in(names: tuple[str, ...], command: list[str], ranks: int) -> list[list[str]]:
    """Return the commands of all ranks, the first half of them in the first namespace.

    TCP is named because both namespaces are one machine, where ranks could otherwise share memory.
    """
    network = ["PCCL_TRANSPORTS=tcp", f"PCCL_SOCKET_IFNAME={INTERFACE}"]
    network.append(f"GLOO_SOCKET_IFNAME={INTERFACE}")
    commands = []
    for rank in range(ranks):
        inside = ["ip", "netns", "exec", names[2 * rank // ranks]]
        seat = ["env", f"RANK={rank}", f"WORLD_SIZE={ranks}", *network]
        commands.append([*inside, *seat, *command])
    return commands

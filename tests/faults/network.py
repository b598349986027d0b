# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a cable that can be pulled."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import re
import string
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERFACE = "veth0"
FOLDER = Path("/run/netns")
_NAME = re.compile(r"pccl-(\d+)-\d+-[a-z]")  # the process that made it, a number, an end
_numbers = itertools.count()


def _ip(*arguments: str) -> None:
    # In a session of its own: a signal to our process group must not end it half-way.
    subprocess.run(["ip", *arguments], check=True, capture_output=True, start_new_session=True)


def why_no_namespaces() -> str | None:
    """Return the reason why links cannot be pulled here, or None where they can."""
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    name = f"pccl-try-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return "this machine does not let us make network namespaces"
    return None


def namespaces_of(pid: int) -> list[str]:
    """Return the names of the namespaces that a process has made, and not removed yet."""
    return [name for name, owner in _all() if owner == pid]


def _all() -> list[tuple[str, int]]:
    names = [entry.name for entry in FOLDER.iterdir()] if FOLDER.is_dir() else []
    return [(match[0], int(match[1])) for match in map(_NAME.fullmatch, names) if match]


@functools.cache  # once in a process
def remove_abandoned() -> None:
    """Remove the namespaces of processes that were killed before they could."""
    for name, owner in _all():
        if not Path("/proc", str(owner)).exists():
            with contextlib.suppress(subprocess.CalledProcessError):  # another was quicker
                _ip("netns", "delete", name)


@contextlib.contextmanager
def namespaces(count: int) -> Iterator[list[str]]:
    """Give the names of namespaces with a loopback each; they are removed at the end."""
    remove_abandoned()
    number = next(_numbers)
    names = [f"pccl-{os.getpid()}-{number}-{end}" for end in string.ascii_lowercase[:count]]
    with contextlib.ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            _ip("-n", name, "link", "set", "lo", "up")
        yield names


@contextlib.contextmanager
def separate_namespaces() -> Iterator[tuple[str, str]]:
    """Give the names of two namespaces with a loopback each; they are removed at the end."""
    with namespaces(2) as names:
        yield names[0], names[1]


@contextlib.contextmanager
def joined_namespaces() -> Iterator[tuple[str, str]]:
    """Give the names of two namespaces with `INTERFACE` each; they are removed at the end."""
    with separate_namespaces() as names:
        join(names, INTERFACE, ("10.112.0.1/24", "10.112.0.2/24"))
        yield names


def join(names: tuple[str, str], interface: str, addresses: tuple[str, str]) -> None:
    """Lay a cable between two namespaces, with ``interface`` at both ends."""
    pair = ("type", "veth", "peer", "name", interface, "netns", names[1])
    _ip("link", "add", interface, "netns", names[0], *pair)
    for name, address in zip(names, addresses, strict=True):
        configure(name, interface, address)
    for name in names:
        await_up(name, interface)


def configure(namespace: str, interface: str, *addresses: str) -> None:
    """Give an interface of a namespace its addresses, and take it up."""
    for address in addresses:
        # The address of IPv6 need not wait until nobody has objected to it.
        at_once = ("nodad",) if ":" in address else ()
        _ip("-n", namespace, "address", "add", address, "dev", interface, *at_once)
    _ip("-n", namespace, "link", "set", interface, "up")


def in_namespace(namespace: str, words: str) -> None:
    """Run ``ip`` with these words in a namespace."""
    _ip("-n", namespace, *words.split())


def await_up(namespace: str, interface: str) -> None:
    """The kernel tells of a new link's state up to a second later."""
    show = ["ip", "-n", namespace, "-o", "link", "show", interface]
    for _ in range(500):
        if "state UP" in subprocess.run(show, check=True, capture_output=True, text=True).stdout:
            return
        time.sleep(0.01)
    raise TimeoutError(f"{interface} in {namespace} did not come up")


def pull_link(namespace: str) -> None:
    """Take the interface of a namespace down: nothing gets in or out any more."""
    _ip("-n", namespace, "link", "set", INTERFACE, "down")


def limit_rate(namespace: str, mbit: int, interface: str = INTERFACE, burst_kb: int = 32) -> None:
    """Let an interface of a namespace send at no more than this rate."""
    rate = ("tbf", "rate", f"{mbit}mbit", "burst", f"{burst_kb}kb", "latency", "50ms")
    subprocess.run(
        ["tc", "-n", namespace, "qdisc", "replace", "dev", interface, "root", *rate],
        check=True,
        capture_output=True,
        start_new_session=True,
    )


def part(first: str, second: str) -> None:
    """Let two joined namespaces lose what the other sends, with both interfaces up."""
    nobody = ("lladdr", "02:00:00:00:00:00", "dev", INTERFACE, "nud", "permanent")
    for namespace, other in ((first, 2), (second, 1)):
        _ip("-n", namespace, "neighbour", "replace", f"10.112.0.{other}", *nobody)


def enter(namespace: str) -> None:
    """Move this process into a namespace; sockets it has stay where they are."""
    clone_new_network = 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    with (FOLDER / namespace).open() as handle:
        if libc.setns(handle.fileno(), clone_new_network) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the network namespace")

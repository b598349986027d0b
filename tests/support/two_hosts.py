# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine, as PCCL tells hosts apart: by their kernel and network namespace.

    with two_hosts() as hosts:
        ...  # a rank: hosts[1].enter(), before PCCL looks where it is

Needs root, but no command. The namespaces have no names, and end with the processes in them. Where
the machine makes no network namespaces, the hosts share a network, and differ in their boot ids.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERFACE = "veth0"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

# linux/sched.h, sys/mount.h, linux/sockios.h, linux/if.h
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SIOCGIFFLAGS = 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
# linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h, veth.h
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 0x1, 0x4, 0x400
RTM_NEWLINK, RTM_NEWADDR = 16, 20
IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2


@dataclass(frozen=True)
class Host:
    """Where a rank goes; can be pickled."""

    network: str = ""  # path of a namespace
    boot_id: str = ""  # path of a file

    def enter(self) -> None:
        """Move this thread, and those that it starts, to the host; sockets stay where they are."""
        if self.network:
            with Path(self.network).open() as namespace:
                _call("setns", namespace.fileno(), CLONE_NEWNET)
        if self.boot_id:
            bind_over(self.boot_id, BOOT_ID)


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Give two hosts; OSError where the machine lets us make none."""
    with contextlib.ExitStack() as stack:
        try:
            hosts = stack.enter_context(joined_namespaces())
        except OSError as error:
            print(f"no network namespaces ({error}): two boot ids in their place")
            hosts = stack.enter_context(boot_ids())
        yield hosts


@contextlib.contextmanager
def joined_namespaces() -> Iterator[tuple[Host, Host]]:
    """Give a network namespace each, with ``INTERFACE`` at the ends of one cable."""
    with contextlib.ExitStack() as stack:
        namespaces = []
        for _ in range(2):
            namespaces.append(_on(Host(), _new_namespace))
            stack.callback(os.close, namespaces[-1])
        hosts = [Host(network=f"/proc/{os.getpid()}/fd/{number}") for number in namespaces]
        _on(hosts[0], lambda: _add_cable(namespaces[1]))
        for number, host in enumerate(hosts, 1):
            _on(host, lambda number=number: _bring_up(f"10.113.0.{number}"))
        for host in hosts:
            _on(host, _await_cable)
        yield hosts[0], hosts[1]


@contextlib.contextmanager
def boot_ids() -> Iterator[tuple[Host, Host]]:
    """Give this host, and one that differs from it in nothing else."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{uuid.uuid4()}\n")
        file.flush()
        hosts = Host(), Host(boot_id=file.name)
        if _on(hosts[1], Path(BOOT_ID).read_text) != Path(file.name).read_text():
            raise OSError("boot ids cannot be replaced")
        yield hosts


def bind_over(source: str, target: str) -> None:
    """Let this thread, and those that it starts, find another file or folder at ``target``."""
    _call("unshare", CLONE_NEWNS)
    _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _call("mount", source.encode(), target.encode(), None, MS_BIND | MS_REC, None)


def _on(host: Host, work: Callable[[], Any]) -> Any:
    """Do it on a thread of its own: a namespace is a thread's."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(host.enter).result()
        return thread.submit(work).result()


def _call(function: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _new_namespace() -> int:
    _call("unshare", CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def _add_cable(namespace: int) -> None:
    """From this namespace to another."""
    name = _attribute(IFLA_IFNAME, INTERFACE.encode() + b"\0")
    there = _attribute(IFLA_NET_NS_FD, struct.pack("I", namespace))
    data = _attribute(IFLA_INFO_DATA, _attribute(VETH_INFO_PEER, _link() + name + there))
    kind = _attribute(IFLA_INFO_KIND, b"veth")
    _request(RTM_NEWLINK, _link() + name + _attribute(IFLA_LINKINFO, kind + data), NLM_F_CREATE)


def _bring_up(address: str) -> None:
    """Give the interface an address, and turn it on, and ``lo``."""
    index = socket.if_nametoindex(INTERFACE)
    numbers = socket.inet_aton(address)
    own = struct.pack("4BI", socket.AF_INET, 24, 0, 0, index)
    both = _attribute(IFA_LOCAL, numbers) + _attribute(IFA_ADDRESS, numbers)
    _request(RTM_NEWADDR, own + both, NLM_F_CREATE)
    for each in (index, socket.if_nametoindex("lo")):
        _request(RTM_NEWLINK, _link(each, IFF_UP))


def _await_cable() -> None:
    """The kernel tells of a new link's state up to a second later."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _ in range(500):
            request = struct.pack("16sh22x", INTERFACE.encode(), 0)
            (flags,) = struct.unpack_from("h", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request), 16)
            if flags & IFF_RUNNING:
                return
            time.sleep(0.01)
    raise TimeoutError(f"{INTERFACE} did not come up")


def _link(index: int = 0, flags: int = 0) -> bytes:
    """Return a struct ifinfomsg that sets the flags."""
    return struct.pack("BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _attribute(kind: int, value: bytes) -> bytes:
    """Return a struct rtattr, padded."""
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _request(kind: int, payload: bytes, flags: int = 0) -> None:
    """Ask the kernel for something by rtnetlink."""
    family, protocol = socket.AF_NETLINK, socket.NETLINK_ROUTE
    header = struct.pack("IHHII", 16 + len(payload), kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0)
    with socket.socket(family, socket.SOCK_RAW, protocol) as kernel:
        kernel.sendto(header + payload, (0, 0))
        (error,) = struct.unpack_from("i", kernel.recv(4096), 16)
    if error != 0:
        raise OSError(-error, f"rtnetlink: {os.strerror(-error)}")

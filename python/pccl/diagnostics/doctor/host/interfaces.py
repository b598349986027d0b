# SPDX-License-Identifier: Apache-2.0
"""Network interfaces of the host, as the kernel of this network namespace lists them."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import ipaddress
import socket
import struct
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Interface", "matches", "read", "selected"]

# linux/sockios.h, linux/if.h, linux/ethtool.h
_SIOCGIFCONF, _SIOCGIFFLAGS, _SIOCGIFMTU, _SIOCETHTOOL = 0x8912, 0x8913, 0x8921, 0x8946
_IFF_UP, _IFF_LOOPBACK, _IFF_RUNNING = 0x1, 0x8, 0x40
_ETHTOOL_GSET = 0x1
_LENGTH = 40  # of struct ifreq
_UNKNOWN_MBIT = 4_000_000
_SCOPE_LINK = 0x20


@dataclasses.dataclass(frozen=True)
class Interface:
    """An interface, with its addresses.

    ``mbit`` is the speed of its link; 0 if it is unknown.
    """

    name: str
    is_up: bool = True
    has_carrier: bool = True
    is_loopback: bool = False
    is_hardware: bool = True  # False: a bridge, a tunnel, an end of a virtual cable
    mtu: int = 1500
    mbit: int = 0
    addresses: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether peers can be reached by the interface."""
        return self.is_up and self.has_carrier and not self.is_loopback and bool(self.addresses)


def read(root: Root) -> tuple[Interface, ...]:
    """Return the interfaces of this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        addresses = _ipv4_addresses(channel)
        for name, address in _ipv6_addresses(root):
            addresses.setdefault(name, []).append(address)
        names = [name for _, name in socket.if_nameindex()]
        return tuple(
            dataclasses.replace(
                _interface(channel, name, addresses.get(name, [])),
                is_hardware=root.path(f"/sys/class/net/{name}/device").exists(),
            )
            for name in names
        )


def selected(interfaces: typing.Iterable[Interface], pattern: str) -> list[Interface]:
    """Return the interfaces that a list such as that of ``PCCL_SOCKET_IFNAME`` selects."""
    excludes = pattern.startswith("^")
    parts = [part.strip() for part in pattern.lstrip("^").split(",") if part.strip()]
    return [each for each in interfaces if any(matches(each, part) for part in parts) != excludes]


def matches(interface: Interface, pattern: str) -> bool:
    """Return whether a prefix, an exact name (``=eth0``) or a subnet selects an interface."""
    if "/" in pattern:
        with contextlib.suppress(ValueError):
            subnet = ipaddress.ip_network(pattern, strict=False)
            return any(ipaddress.ip_address(each) in subnet for each in interface.addresses)
        return False
    if pattern.startswith("="):
        return interface.name == pattern[1:]
    return interface.name.startswith(pattern)


def _interface(channel: socket.socket, name: str, addresses: list[str]) -> Interface:
    flags = _short(channel, _SIOCGIFFLAGS, name)
    return Interface(
        name=name,
        is_up=bool(flags & _IFF_UP),
        has_carrier=bool(flags & _IFF_RUNNING),
        is_loopback=bool(flags & _IFF_LOOPBACK),
        mtu=_value(channel, _SIOCGIFMTU, name, "i"),
        mbit=_mbit(channel, name),
        addresses=tuple(addresses),
    )


def _short(channel: socket.socket, request: int, name: str) -> int:
    return _value(channel, request, name, "H")


def _value(channel: socket.socket, request: int, name: str, form: str) -> int:
    asked = struct.pack("16s24x", name.encode())
    try:
        answer = fcntl.ioctl(channel, request, asked)
    except OSError:  # the interface has just gone
        return 0
    return int(struct.unpack_from(form, answer, 16)[0])


def _mbit(channel: socket.socket, name: str) -> int:
    import ctypes

    command = ctypes.create_string_buffer(struct.pack("I40x", _ETHTOOL_GSET), 44)
    asked = struct.pack("16sP16x", name.encode(), ctypes.addressof(command))
    try:
        fcntl.ioctl(channel, _SIOCETHTOOL, asked)
    except OSError:  # a device without a link, such as a bridge
        return 0
    low, high = struct.unpack_from("H", command, 12)[0], struct.unpack_from("H", command, 28)[0]
    mbit = int(low | high << 16)
    return 0 if mbit >= _UNKNOWN_MBIT else mbit


def _ipv4_addresses(channel: socket.socket) -> dict[str, list[str]]:
    import array

    room = array.array("B", bytes(_LENGTH * 256))
    asked = struct.pack("iP", len(room), room.buffer_info()[0])
    length = struct.unpack_from("i", fcntl.ioctl(channel, _SIOCGIFCONF, asked))[0]
    found: dict[str, list[str]] = {}
    for at in range(0, length, _LENGTH):
        name = bytes(room[at : at + 16]).split(b"\0")[0].decode().partition(":")[0]
        found.setdefault(name, []).append(socket.inet_ntoa(bytes(room[at + 20 : at + 24])))
    return found


def _ipv6_addresses(root: Root) -> Iterator[tuple[str, str]]:
    """Return names and addresses, without those of a link alone."""
    for line in (root.text("/proc/net/if_inet6") or "").splitlines():
        words = line.split()
        if len(words) == 6 and int(words[3], 16) != _SCOPE_LINK:
            yield words[5], str(ipaddress.IPv6Address(bytes.fromhex(words[0])))

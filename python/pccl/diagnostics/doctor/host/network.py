# SPDX-License-Identifier: Apache-2.0
"""Network of the host: interfaces, names, ports, and the meeting place of a job."""

from __future__ import annotations

import dataclasses
import socket
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.host import interfaces, lookup

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.host.interfaces import Interface
    from pccl.diagnostics.doctor.root import Root

__all__ = ["Network", "check", "read"]

LEAST_MTU = 1280
LEAST_MBIT = 1000
LEAST_PORTS = 1000
_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


@dataclasses.dataclass(frozen=True)
class Network:
    """The network of a host.

    ``name_failure`` and ``meeting_failure`` are why a name has no address; empty if it has one.
    """

    interfaces: tuple[Interface, ...] = ()
    requested: str = ""  # PCCL_SOCKET_IFNAME
    name: str = ""
    name_failure: str = ""
    meeting: str = ""  # MASTER_ADDR
    meeting_failure: str = ""
    meeting_addresses: tuple[str, ...] = ()
    ports: tuple[int, int] = (32768, 60999)


def read(root: Root) -> Network:
    """Read interfaces and ports, and look up the names of this host and of the meeting place."""
    name = socket.gethostname()
    meeting = root.environment.get("MASTER_ADDR", "")
    own = lookup.addresses_of(name)
    met = lookup.addresses_of(meeting) if meeting else lookup.Lookup()
    return Network(
        interfaces=interfaces.read(root),
        requested=root.environment.get("PCCL_SOCKET_IFNAME", ""),
        name=name,
        name_failure=own.failure,
        meeting=meeting,
        meeting_failure=met.failure,
        meeting_addresses=met.addresses,
        ports=_ports(root.text(_RANGE) or ""),
    )


def check(network: Network) -> Iterator[Finding]:
    """Find interfaces, names and port ranges by which peers cannot be reached."""
    yield from _check_selection(network)
    is_reached = any(each.is_usable for each in network.interfaces)
    for interface in network.interfaces:
        if not interface.is_loopback and interface.addresses:
            yield from _check_interface(interface, is_reached)
    yield from _check_names(network)
    first, last = network.ports
    if last - first + 1 < LEAST_PORTS:
        yield error(
            "network.ports",
            f"net.ipv4.ip_local_port_range has {last - first + 1} ports ({first} to {last}), too"
            " few for the connections of a job",
            'run `sysctl net.ipv4.ip_local_port_range="32768 60999"`',
            first=first,
            last=last,
        )


def _check_selection(network: Network) -> Iterator[Finding]:
    if not network.requested:
        return
    found = interfaces.selected(network.interfaces, network.requested)
    if not any(each.is_usable for each in found):
        usable = ", ".join(each.name for each in network.interfaces if each.is_usable)
        state = f"{found[0].name}, which is down or has no address" if found else "no interface"
        yield error(
            "network.selection",
            f"PCCL_SOCKET_IFNAME={network.requested} selects {state}",
            f"name one of: {usable or 'none is up, so bring one up by `ip link set NAME up`'}",
            usable=usable,
        )


def _check_interface(interface: Interface, is_reached: bool) -> Iterator[Finding]:
    """Find faults of an interface with addresses; ``is_reached``: another one works.

    Bridges without members have no carrier, and drivers of tunnels invent speeds.
    """
    name = interface.name
    if not interface.is_usable:
        if is_reached and not interface.is_hardware:
            return
        state = "has no carrier" if interface.is_up else "is down"
        yield warning(
            "network.interface",
            f"{name} with {interface.addresses[0]} {state}",
            f"run `ip link set {name} up`" if not interface.is_up else f"check the cable of {name}",
            interface=name,
        )
    elif interface.mtu < LEAST_MTU:
        yield warning(
            "network.mtu",
            f"{name} has an MTU of {interface.mtu} bytes, below {LEAST_MTU}",
            f"run `ip link set {name} mtu 1500` (9000 where the switches allow it)",
            interface=name,
            mtu=interface.mtu,
        )
    elif interface.is_hardware and 0 < interface.mbit < LEAST_MBIT:
        yield warning(
            "network.speed",
            f"the link of {name} runs at {interface.mbit} Mb/s",
            f"check its cable and port (ethtool {name}), or name a faster interface in"
            " PCCL_SOCKET_IFNAME",
            interface=name,
            mbit=interface.mbit,
        )


def _check_names(network: Network) -> Iterator[Finding]:
    if network.name_failure:
        yield warning(
            "network.host_name",
            f"the host name {network.name} does not resolve ({network.name_failure})",
            f"add a line `ADDRESS {network.name}` to /etc/hosts, or an entry to the DNS",
            name=network.name,
        )
    if network.meeting_failure:
        yield error(
            "network.meeting_place",
            f"MASTER_ADDR={network.meeting} does not resolve ({network.meeting_failure})",
            "set MASTER_ADDR to an address of rank 0's host, or add the name to /etc/hosts",
            name=network.meeting,
        )
    own = _families(network)
    met = {":" in address for address in network.meeting_addresses}
    if met and own and not met & own and not network.meeting.startswith("127."):
        missing, present = ("IPv6", "IPv4") if True in met else ("IPv4", "IPv6")
        yield error(
            "network.family",
            f"MASTER_ADDR={network.meeting} is an {missing} address, and the interfaces of this"
            f" host have {present} addresses alone",
            f"set MASTER_ADDR to the {present} address of rank 0's host",
            meeting=network.meeting,
        )


def _families(network: Network) -> set[bool]:
    """Return whether the usable interfaces have addresses of IPv6 (True) and of IPv4 (False)."""
    return {
        ":" in address
        for interface in network.interfaces
        if interface.is_usable
        for address in interface.addresses
    }


def _ports(text: str) -> tuple[int, int]:
    words = text.split()
    if len(words) == 2 and all(word.isdigit() for word in words):
        return int(words[0]), int(words[1])
    return 32768, 60999

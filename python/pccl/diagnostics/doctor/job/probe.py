# SPDX-License-Identifier: Apache-2.0
"""Probes of the path from one host to another, by sockets of the examination itself."""

from __future__ import annotations

import dataclasses
import ipaddress
import time
import typing

from pccl.diagnostics.doctor.job.dialling import dial, reached
from pccl.diagnostics.doctor.job.pinging import Pinger, Pings

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pccl.diagnostics.doctor.host.interfaces import Interface

__all__ = ["Address", "End", "Probe", "addresses_of", "probe"]

PINGS = 200
REACH_S = 1.5
GRACE_S = 0.05
SERIES_S = 3.0
NO_ADDRESS = "no address of its own"


@dataclasses.dataclass(frozen=True)
class Address:
    """An address of a host, with its interface."""

    address: str
    interface: str
    mtu: int
    mbit: int


@dataclasses.dataclass(frozen=True)
class End:
    """What a host publishes for the probes of others."""

    addresses: list[Address]
    udp_port: int
    tcp_ports: list[int]

    @staticmethod
    def of(value: typing.Any) -> End:
        """Return the end that another host has published."""
        return End(
            [Address(**each) for each in value["addresses"]],
            int(value["udp_port"]),
            [int(port) for port in value["tcp_ports"]],
        )


@dataclasses.dataclass
class Probe:
    """The path from this host to another; ``address`` is empty if no address was reached."""

    address: str = ""
    local: str = ""
    interface: str = ""
    failure: str = ""  # the reason of the last attempt, if nothing was reached
    sent: int = 0
    answered: int = 0
    rtt_s: float | None = None
    offset_s: float | None = None
    mtu: int = 0  # of both interfaces
    own_mtu: int = 0
    peer_mtu: int = 0
    largest_mtu: int | None = None  # of packets that pass; None: not tried, as no ping passes
    mbit: int = 0  # of both links; 0: unknown
    open_ports: list[int] = dataclasses.field(default_factory=list)
    closed_ports: list[int] = dataclasses.field(default_factory=list)
    port_failure: str = ""
    routes: dict[str, str] = dataclasses.field(default_factory=dict)  # from which address, to each
    interfaces: dict[str, int] = dataclasses.field(default_factory=dict)  # that lead there: Mb/s

    @property
    def is_reached(self) -> bool:
        """Whether TCP connections are made."""
        return bool(self.open_ports)

    @property
    def is_measurable(self) -> bool:
        """Whether a group of ranks can use the path: all ports open, and packets of any size."""
        passes = self.largest_mtu is None or self.largest_mtu == self.mtu
        return self.is_reached and not self.closed_ports and passes


def addresses_of(interfaces: Sequence[Interface], requested: str) -> list[Address]:
    """Return the addresses at which PCCL listens: those of the loopback if there are no others."""
    from pccl.diagnostics.doctor.host.interfaces import selected

    usable = [each for each in interfaces if each.is_usable]
    if requested:
        usable = selected(usable, requested)
    usable = usable or [each for each in interfaces if each.is_loopback]
    found = [
        Address(address, each.name, each.mtu, each.mbit)
        for each in usable
        for address in each.addresses
    ]
    return sorted(found, key=lambda each: ":" in each.address)


def probe(
    number: int, own: End, peer: End, token: bytes, clock: Callable[[], float] = time.time
) -> Probe:
    """Probe the path to a peer, from the host with this number."""
    addresses = _addresses_apart(own, peer)
    result = Probe(failure=NO_ADDRESS)
    if not addresses or not peer.tcp_ports:
        return result
    first = _first_reached(number, addresses, peer, token, result)
    result.address = first.address
    _describe_others(own, peer, result)
    with Pinger(number, token, (first.address, peer.udp_port), clock) as pinger:
        _measure_pings(pinger, result)
        _describe(pinger.local, own, first, result)
        if result.answered:
            result.largest_mtu = _path_mtu(pinger, result.mtu)
    _dial_ports(first.address, peer, result)
    return result


def _addresses_apart(own: End, peer: End) -> list[Address]:
    """Return the addresses of the peer alone; hosts with equal addresses share their network."""
    shared = {each.address for each in own.addresses}
    if shared == {each.address for each in peer.addresses}:
        return peer.addresses
    return [
        each
        for each in peer.addresses
        if each.address not in shared and not ipaddress.ip_address(each.address).is_loopback
    ]


def _first_reached(
    number: int, addresses: list[Address], peer: End, token: bytes, result: Probe
) -> Address:
    """Return the first address with a connection or with answers, otherwise the first one."""
    ends = [(each.address, peer.tcp_ports[0]) for each in addresses]
    outcomes = dial(ends, REACH_S, GRACE_S)
    result.routes = {each.address: each.local for each in reached(outcomes)}
    good = result.routes
    for each in addresses:
        if each.address in good:
            result.failure = ""
            return each
    for each in addresses:
        with Pinger(number, token, (each.address, peer.udp_port)) as pinger:
            if pinger.series(3, 0.5).answered:
                result.failure = ""
                return each
    result.failure = outcomes[0].failure
    return addresses[0]


def _measure_pings(pinger: Pinger, result: Probe) -> None:
    pings: Pings = pinger.series(PINGS, SERIES_S)
    result.sent, result.answered = pings.sent, pings.answered
    result.rtt_s, result.offset_s = pings.rtt_s, pings.offset_s
    if pings.failure and not pings.answered:
        result.failure = pings.failure


def _describe(local: str, own: End, peer: Address, result: Probe) -> None:
    result.local = local
    mine = next((each for each in own.addresses if each.address == local), None)
    result.interface = mine.interface if mine else ""
    result.peer_mtu = peer.mtu
    result.own_mtu = mine.mtu if mine else peer.mtu
    result.mtu = min(result.own_mtu, peer.mtu)
    speeds = [each.mbit for each in (mine, peer) if each and each.mbit]
    result.mbit = min(speeds, default=0)


def _describe_others(own: End, peer: End, result: Probe) -> None:
    """Note the speed of each interface of this host by which an address of the peer is reached."""
    mine = {each.address: each for each in own.addresses}
    for address in peer.addresses:
        local = mine.get(result.routes.get(address.address, ""))
        if local is not None:
            mbit = min(local.mbit, address.mbit)
            result.interfaces[local.interface] = max(
                mbit, result.interfaces.get(local.interface, 0)
            )


def _path_mtu(pinger: Pinger, mtu: int) -> int:
    if pinger.passes(mtu):
        return mtu
    return pinger.largest_mtu(mtu)


def _dial_ports(address: str, peer: End, result: Probe) -> None:
    """Try all ports, and those without an answer once more."""
    outcomes = dial(((address, port) for port in peer.tcp_ports), REACH_S)
    silent = [each for each in outcomes if each.failure]
    if silent and len(silent) < len(outcomes):
        again = dial(((address, each.port) for each in silent), REACH_S)
        outcomes = [each for each in outcomes if not each.failure] + again
    result.open_ports = sorted(each.port for each in outcomes if not each.failure)
    result.closed_ports = sorted(each.port for each in outcomes if each.failure)
    result.port_failure = next((each.failure for each in outcomes if each.failure), "")

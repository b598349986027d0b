# SPDX-License-Identifier: Apache-2.0
"""Verdicts about the paths between hosts: the cause that explains the most is the one named."""

from __future__ import annotations

import statistics
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.job.path import expected_bytes_per_s
from pccl.diagnostics.doctor.job.probe import NO_ADDRESS

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pccl.diagnostics.doctor.job.path import Path
    from pccl.diagnostics.doctor.job.probe import Probe

__all__ = ["check", "slow_limit", "verdict"]

MOST_LOST = 0.01
LEAST_LOST_PINGS = 2
SLOW = 0.35  # of the expected speed
SLOW_ON_ONE_MACHINE = 0.1  # where hosts share cores and memory
SLOW_BESIDE_OTHERS = 0.25
LONG_RTT_S = 0.005
MUCH_FASTER = 2
MOST_WAITED = 0.95  # of the time, for which a busy machine may answer


def slow_limit(one_machine: bool) -> float:
    """Return the part of the expected speed below which a path is slow."""
    return SLOW_ON_ONE_MACHINE if one_machine else SLOW


def check(paths: Sequence[Path], names: Sequence[str], *, one_machine: bool) -> list[Finding]:
    """Return the findings of all paths."""
    speeds = [path.speed.bytes_per_s for path in paths if path.speed is not None]
    usual = statistics.median(speeds) if len(speeds) >= 3 else None
    return [
        found.at(f"{names[path.a]} to {names[path.b]}")
        for path in paths
        for found in verdict(path, names, usual, one_machine=one_machine)
    ]


def verdict(
    path: Path, names: Sequence[str], usual: float | None, *, one_machine: bool = False
) -> Iterator[Finding]:
    """Find the faults of one path; ``usual`` is the median speed of all paths."""
    for judge in (_unreached, _closed_ports, _lossy, _small_mtu):
        faults = list(judge(path, names))
        yield from faults
        if faults and faults[0].severity == "error":
            return
    if path.failure:
        yield error(
            "path.group",
            f"a group of two ranks failed: {path.failure}",
            "run `pccl doctor` again with PCCL_LOG_LEVEL=info, which shows each connection",
        )
    else:
        yield from _slow(path, usual, one_machine=one_machine)
        yield from _slower_interface(path)


def _unreached(path: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Find a path without connections: no route, one direction alone, or nothing at all."""
    if any(each.is_reached or each.answered for each in (path.there, path.back)):
        return
    for probe, _, other in _directions(path, names):
        if probe.failure == NO_ADDRESS:
            yield error(
                "path.no_address",
                f"{other} has no address at which others can reach it",
                "bring an interface up there (`ip link set NAME up`, `ip address add`), or correct"
                " PCCL_SOCKET_IFNAME",
                host=other,
            )
            return
    for probe, own, other in _directions(path, names):
        if "unreachable" in probe.failure.lower():
            yield error(
                "path.route",
                f"{own} has no route to {probe.address} of {other} ({probe.failure})",
                f"run `ip route add {probe.address} dev INTERFACE` on {own}, or name an interface"
                " of a common network in PCCL_SOCKET_IFNAME",
                address=probe.address,
            )
            return
    arrived = dict(zip((path.a, path.b), path.arrived, strict=True))
    for sender, receiver, probe in ((path.a, path.b, path.back), (path.b, path.a, path.there)):
        if arrived[sender] and not arrived[receiver]:
            yield error(
                "path.one_way",
                f"packets of {names[sender]} reach {names[receiver]}, and nothing comes back",
                f"correct the route of {names[receiver]} to {probe.address} (`ip route get"
                f" {probe.address}`), or the firewall that drops what it sends",
                sender=names[sender],
                receiver=names[receiver],
            )
            return
    address = path.there.address or path.back.address or "no common address"
    yield error(
        "path.unreachable",
        f"no packet passes in either direction ({address}: {path.there.failure or 'no answer'})",
        "connect both interfaces to one network, let TCP pass its firewall, or name another"
        " interface in PCCL_SOCKET_IFNAME",
        address=address,
    )


def _closed_ports(path: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Find TCP ports that a firewall closes, unless packets are lost anyway."""
    if _is_lossy(path):
        return
    for probe, own, other in _directions(path, names):
        if not probe.closed_ports:
            continue
        first, last = probe.closed_ports[0], probe.closed_ports[-1]
        count = len(probe.closed_ports)
        share = f"{count} of {count + len(probe.open_ports)} tried TCP ports ({first} to {last})"
        if not probe.open_ports:
            share = f"any of {count} tried TCP ports"
        yield error(
            "path.ports",
            f"{own} cannot connect to {share} of {other} at {probe.address}"
            f" ({probe.port_failure}), while pings pass",
            "let the ports of net.ipv4.ip_local_port_range pass the firewall (nft, iptables,"
            f" security group) of {other}, or narrow that range to ports that pass",
            closed=probe.closed_ports,
            open=probe.open_ports,
        )
        return


def _lossy(path: Path, _: Sequence[str]) -> Iterator[Finding]:
    if _is_lossy(path):
        interface = path.there.interface or "the interface"
        yield error(
            "path.loss",
            f"{path.lost:.1%} of the packets of {interface} are lost",
            f"check cable and port (`ethtool -S {interface}`), duplex, and the queues of the"
            " switch, or name another interface in PCCL_SOCKET_IFNAME",
            lost=path.lost,
            interface=interface,
        )


def _small_mtu(path: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Find a path that drops packets of the interfaces' MTU, and MTUs that differ."""
    for probe, own, other in _directions(path, names):
        if probe.largest_mtu is not None and probe.largest_mtu < probe.mtu:
            yield error(
                "path.mtu",
                f"packets above {probe.largest_mtu} bytes from {own} to {other} vanish, although"
                f" the interfaces have an MTU of {probe.mtu}",
                f"set the MTU of the switches between to {probe.mtu}, or run `ip link set"
                f" {probe.interface or 'INTERFACE'} mtu {probe.largest_mtu}` on both hosts",
                mtu=probe.mtu,
                largest=probe.largest_mtu,
            )
            return
    there = path.there
    if there.own_mtu and there.peer_mtu and there.own_mtu != there.peer_mtu:
        yield warning(
            "path.mtu_mismatch",
            f"the interfaces have MTUs of {there.own_mtu} and {there.peer_mtu} bytes",
            f"set one MTU on both (`ip link set {there.interface or 'INTERFACE'} mtu"
            f" {max(there.own_mtu, there.peer_mtu)}`)",
            mtus=[there.own_mtu, there.peer_mtu],
        )


def _slow(path: Path, usual: float | None, *, one_machine: bool) -> Iterator[Finding]:
    if path.rtt_s is not None and path.rtt_s > LONG_RTT_S:
        yield warning(
            "path.latency",
            f"a round trip takes {path.rtt_s * 1e3:.1f} ms, more than {LONG_RTT_S * 1e3:g} ms",
            f"check the route (`tracepath {path.there.address}`) and the queue of"
            f" {path.there.interface} (`tc qdisc show`)",
            rtt_s=path.rtt_s,
        )
    expected = expected_bytes_per_s(path)
    if path.speed is None or expected is None:
        return
    measured = path.speed.bytes_per_s
    beside = "expected from its link and the costs of this machine"
    limit = slow_limit(one_machine) * expected
    if usual is not None and not one_machine and measured < SLOW_BESIDE_OTHERS * usual:
        limit, expected, beside = usual, usual, "usual between the other hosts"
    if measured < limit * (1 - min(path.speed.waited, MOST_WAITED)):
        interface = path.interface or path.there.interface
        yield warning(
            "path.slow",
            f"{interface} carries {_rate(measured)}, {100 * measured / expected:.2g} % of the"
            f" {_rate(expected)} {beside}",
            f"check its speed (`ethtool {interface}`), its queue (`tc qdisc show dev {interface}`)"
            " and other traffic, or name a faster interface in PCCL_SOCKET_IFNAME",
            bytes_per_s=measured,
            expected=expected,
        )


def _slower_interface(path: Path) -> Iterator[Finding]:
    """Find that PCCL uses another interface than the fastest one that leads to the host."""
    mbits = path.there.interfaces
    used = path.interface or path.there.interface
    best = max(mbits, key=lambda name: mbits[name], default="")
    if mbits.get(used) and mbits[best] >= MUCH_FASTER * mbits[used]:
        yield warning(
            "path.interface",
            f"PCCL uses {used} with {mbits[used]} Mb/s, and {best} with {mbits[best]} Mb/s leads"
            " there, too",
            f"set PCCL_SOCKET_IFNAME={best} on all ranks",
            used=used,
            best=best,
        )


def _is_lossy(path: Path) -> bool:
    pings = path.there, path.back
    lost = sum(each.sent - each.answered for each in pings)
    is_answered = any(each.answered for each in pings)
    return is_answered and lost >= LEAST_LOST_PINGS and path.lost > MOST_LOST


def _directions(path: Path, names: Sequence[str]) -> list[tuple[Probe, str, str]]:
    """Return the probe of each direction, with the names of its own host and of the other."""
    return [
        (path.there, names[path.a], names[path.b]),
        (path.back, names[path.b], names[path.a]),
    ]


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.3g} GB/s"

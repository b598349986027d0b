# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor`` on jobs whose networks are broken: hosts are network namespaces at a switch.

Each broken network has one finding, whose line names both hosts and the setting to change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from faults.network import in_namespace, why_no_namespaces
from support import doctor_job, switched_hosts
from support.doctor_job import Odd
from support.switched_hosts import INTERFACE, address_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.multiproc
WHY_NOT = why_no_namespaces()
needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@needs_namespaces
def test_a_healthy_job_has_no_finding(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(3) as hosts:
        report, statuses = doctor_job.examine([host for host in hosts for _ in range(2)], tmp_path)
    assert doctor_job.about_job(report) == []
    assert statuses == [report.status] * 6
    assert [host.ranks for host in report.hosts] == [[0, 1], [2, 3], [4, 5]]
    assert all(host.speed is not None for host in report.hosts)
    assert [(path.a, path.b) for path in report.paths] == [(0, 1), (0, 2), (1, 2)]
    for path in report.paths:
        assert path.failure == ""
        assert path.interface == INTERFACE
        assert path.there.address == address_of(path.b)
        assert path.there.largest_mtu == 1500
        assert path.there.answered == path.there.sent > 0
        assert len(path.there.open_ports) == 16
        assert path.speed is not None
        assert path.speed.bytes_per_s > 0


def lossy(hosts: list[str]) -> None:
    switched_hosts.lose(hosts[1], 0.1)


def small_mtu_between(hosts: list[str]) -> None:
    switched_hosts.drop_large(hosts[1], 1400)


def mtus_that_differ(hosts: list[str]) -> None:
    in_namespace(hosts[1], f"link set {INTERFACE} mtu 9000")


def some_ports_closed(hosts: list[str]) -> None:
    switched_hosts.drop_ports(hosts[1], 45000)


def all_ports_closed(hosts: list[str]) -> None:
    switched_hosts.drop_ports(hosts[1], 1)


def one_way(hosts: list[str]) -> None:
    switched_hosts.drop_all_to(hosts[1], 0)


def no_route(hosts: list[str]) -> None:
    in_namespace(hosts[1], f"route delete 10.114.0.0/24 dev {INTERFACE}")


def slow(hosts: list[str]) -> None:
    switched_hosts.limit_rate(hosts[1], 20)


def interface_down(hosts: list[str]) -> None:
    in_namespace(hosts[1], f"link set {INTERFACE} down")


BROKEN = [
    (lossy, "path.loss", "ethtool -S eth0"),
    (small_mtu_between, "path.mtu", "ip link set eth0 mtu 1400"),
    (mtus_that_differ, "path.mtu_mismatch", "mtu 9000"),
    (some_ports_closed, "path.ports", "ip_local_port_range"),
    (all_ports_closed, "path.ports", "any of 16 tried TCP ports"),
    (one_way, "path.one_way", f"ip route get {address_of(0)}"),
    (no_route, "path.route", f"ip route add {address_of(0)}"),
    (slow, "path.slow", "ethtool eth0"),
]


@needs_namespaces
@pytest.mark.parametrize(
    ("breaks", "check", "setting"), BROKEN, ids=[each[0].__name__ for each in BROKEN]
)
def test_a_broken_network_has_one_finding_with_its_setting(
    tmp_path: Path, breaks: Callable[[list[str]], None], check: str, setting: str
) -> None:
    with switched_hosts.switched_hosts(2) as hosts:
        breaks(hosts)
        report, statuses = doctor_job.examine(hosts, tmp_path)
    found = doctor_job.about_job(report)
    assert [each.check for each in found] == [check]
    assert setting in found[0].line
    assert found[0].where == "{}#0 to {}#1".format(*[os.uname().nodename] * 2)
    assert statuses == [report.status] * 2
    assert report.status == 1 or found[0].severity == "warning"


@needs_namespaces
def test_a_fault_of_one_host_is_one_finding(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(3) as hosts:
        all_ports_closed(hosts)
        report, _ = doctor_job.examine(hosts, tmp_path)
    found = doctor_job.about_job(report)
    assert [each.check for each in found] == ["path.ports"]
    assert f"{os.uname().nodename}#1 to each other host" in found[0].line
    assert report.paths[1].speed is not None  # that of the other two hosts


@needs_namespaces
def test_a_path_without_udp_is_well(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(2) as hosts:
        switched_hosts.drop_udp(hosts[1])
        report, statuses = doctor_job.examine(hosts, tmp_path)
    assert doctor_job.about_job(report) == []
    assert statuses == [report.status] * 2
    assert report.paths[0].rtt_s is None
    assert report.paths[0].speed is not None


@needs_namespaces
def test_a_host_without_an_interface_reaches_nobody(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(2) as hosts:
        interface_down(hosts)
        report, _ = doctor_job.examine(hosts, tmp_path)
    assert [each.check for each in doctor_job.about_job(report)] == ["path.no_address"]
    assert "network.interface" in [each.check for each in report.findings]


@needs_namespaces
def test_a_clock_that_is_ahead_is_found(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(3) as hosts:
        report, statuses = doctor_job.examine(hosts, tmp_path, {2: Odd(clock_s=-3.0)})
    found = doctor_job.about_job(report)
    assert [each.check for each in found] == ["clocks.skew"]
    assert found[0].where.endswith("#2")
    assert "3 s behind" in found[0].line
    assert statuses == [report.status] * 3


@needs_namespaces
def test_hosts_with_ipv6_alone_are_well(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(2, has_ipv4=False) as hosts:
        report, _ = doctor_job.examine(hosts, tmp_path)
    assert doctor_job.about_job(report) == []
    assert report.paths[0].there.address == "fd00::2"
    assert report.paths[0].there.largest_mtu == 1500
    assert report.paths[0].speed is not None


@pytest.mark.slow
@needs_namespaces
def test_64_ranks_on_8_hosts_are_examined(tmp_path: Path) -> None:
    with switched_hosts.switched_hosts(8) as hosts:
        report, statuses = doctor_job.examine([host for host in hosts for _ in range(8)], tmp_path)
    print(f"64 ranks on 8 hosts: {report.seconds:.1f} s")
    assert doctor_job.about_job(report) == []
    assert statuses == [report.status] * 64
    assert len(report.paths) == 28

# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor`` in a job: differences between ranks, forms of the report, and launchers."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pccl.diagnostics.doctor.finding import error
from pccl.diagnostics.doctor.job import (
    agreement,
    clocks,
    evaluation,
    metrics,
    paths,
    placement,
    show,
    tournament,
)
from pccl.diagnostics.doctor.job.exchange import Exchange, Late
from pccl.diagnostics.doctor.job.hosts import hosts_of, listed
from pccl.diagnostics.doctor.job.packets import Packet, decode, encode
from pccl.diagnostics.doctor.job.path import Path as HostPath
from pccl.diagnostics.doctor.job.probe import Probe
from pccl.diagnostics.doctor.job.rank_facts import RankFacts
from pccl.diagnostics.doctor.job.report import HostRow, Report, merged
from pccl.diagnostics.doctor.job.responder import sample_ports
from pccl.diagnostics.doctor.job.speed import Speed
from pccl.errors import UnavailableError
from support import doctor_job
from support.doctor_job import Odd
from support.ports import free_port

DOCS = Path(__file__).parents[2] / "docs/guide/doctor.md"
DOCTOR = [sys.executable, "-m", "pccl", "doctor"]


def ranks_of(count: int, **odd_of_last: object) -> list[RankFacts]:
    """Return ranks on hosts of two, the last of which differs."""
    ranks = [
        RankFacts(
            rank=rank,
            host=f"host{rank // 2}",
            host_name=f"node{rank // 2}",
            machine=f"machine{rank // 2}",
            versions={"pccl": "1.0", "torch": "2.13.0"},
            settings={"PCCL_ALGORITHM": "all_reduce=ring"},
            secret="a1",
            cores=[0, 1, 2, 3],
            online=4,
            descriptors=65536,
            namespaces={"user": "user:[1]", "pid": "pid:[1]"},
        )
        for rank in range(count)
    ]
    ranks[-1] = RankFacts(**{**vars(ranks[-1]), **odd_of_last})
    return ranks


def test_equal_ranks_have_no_finding() -> None:
    ranks = ranks_of(6)
    assert list(agreement.check(ranks)) == []
    assert list(placement.check(hosts_of(ranks))) == []


DIFFERENT = [
    ({"versions": {"pccl": "1.1", "torch": "2.13.0"}}, "agreement.version", "install pccl 1.0"),
    ({"versions": {"pccl": "1.0", "torch": "2.12.0"}}, "agreement.version", "install torch 2.13.0"),
    ({"settings": {}}, "agreement.setting", "set PCCL_ALGORITHM to one value"),
    ({"settings": {"PCCL_ALGORITHM": "all_reduce=ring", "PCCL_CAPSULES": "/a"}}, None, "/a"),
    ({"secret": "b2"}, "agreement.secret", "PCCL_SECRET_FILE"),
]


@pytest.mark.parametrize(("odd", "check", "setting"), DIFFERENT)
def test_a_rank_that_differs_is_found(
    odd: dict[str, object], check: str | None, setting: str
) -> None:
    found = list(agreement.check(ranks_of(6, **odd)))
    assert [each.check for each in found] == [check or "agreement.setting"]
    assert "rank 5" in found[0].line
    assert setting in found[0].line


MISPLACED = [
    ({"user": 1000}, "placement.user", "start all ranks as one user"),
    ({"namespaces": {"user": "user:[1]", "pid": "pid:[2]"}}, "placement.namespaces", "--pid=host"),
    ({"quota": 1.5}, "placement.quota", "raise cpu.max to 2 cores"),
]


@pytest.mark.parametrize(("odd", "check", "setting"), MISPLACED)
def test_a_misplaced_rank_is_found(odd: dict[str, object], check: str, setting: str) -> None:
    found = list(placement.check(hosts_of(ranks_of(4, **odd))))
    assert [each.check for each in found] == [check]
    assert found[0].where == "node1"
    assert setting in found[0].line


def test_ranks_that_are_bound_to_one_core_are_found() -> None:
    ranks = [RankFacts(**{**vars(each), "cores": [0]}) for each in ranks_of(2)]
    found = list(placement.check(hosts_of(ranks)))
    assert [each.check for each in found] == ["placement.binding"]
    assert "--bind-to core" in found[0].line


def test_ranks_that_outnumber_the_cores_may_share_them() -> None:
    ranks = [
        RankFacts(**{**vars(each), "host": "host0", "cores": [each.rank % 2], "online": 2})
        for each in ranks_of(3)
    ]
    assert list(placement.check(hosts_of(ranks))) == []


def test_ranks_on_cores_of_their_own_are_well() -> None:
    ranks = [RankFacts(**{**vars(each), "cores": [each.rank]}) for each in ranks_of(2)]
    assert list(placement.check(hosts_of(ranks))) == []


def good_path(a: int = 0, b: int = 1, **changes: object) -> HostPath:
    """Return a path of 10 Gb/s that is well."""
    probe = Probe(
        address="10.0.0.2",
        interface="eth0",
        sent=200,
        answered=200,
        rtt_s=50e-6,
        offset_s=0.0,
        mtu=1500,
        own_mtu=1500,
        peer_mtu=1500,
        largest_mtu=1500,
        mbit=10_000,
        open_ports=[1, 2],
    )
    values: dict[str, object] = {
        "there": probe,
        "back": Probe(**vars(probe)),
        "speed": Speed(20e-6, 20e-6, 4 << 20, 4e-3, 4e-3),
        "tcp_bytes_per_s": 2e9,
        **changes,
    }
    return HostPath(a, b, **values)  # type: ignore[arg-type]


def checks_of(
    path: HostPath, usual: float | None = None, *, one_machine: bool = False
) -> list[str]:
    found = paths.verdict(path, ["node0", "node1"], usual, one_machine=one_machine)
    return [each.check for each in found]


def test_a_good_path_has_no_finding() -> None:
    assert checks_of(good_path()) == []
    assert checks_of(good_path(), usual=1e9) == []


def test_a_path_is_slow_beside_its_link_or_the_others() -> None:
    slow = Speed(20e-6, 20e-6, 4 << 20, 16e-3, 4e-3)  # 0.26 GB/s
    assert checks_of(good_path(speed=slow)) == ["path.slow"]
    assert checks_of(good_path(speed=slow), one_machine=True) == []
    good = good_path(tcp_bytes_per_s=0.5e9, speed=slow)
    assert checks_of(good) == []
    assert checks_of(good, usual=2e9) == ["path.slow"]


def test_a_path_is_not_slow_where_its_ranks_wait_for_cores() -> None:
    busy = Speed(20e-6, 20e-6, 4 << 20, 16e-3, 4e-3, waited=0.9)
    assert checks_of(good_path(speed=busy)) == []


def test_a_long_round_trip_is_found() -> None:
    path = good_path()
    path.there.rtt_s = path.back.rtt_s = 20e-3
    assert checks_of(path) == ["path.latency"]


def test_one_lost_ping_is_no_loss() -> None:
    path = good_path()
    path.there.answered -= 1
    assert checks_of(path) == []
    path.there.answered -= 10
    assert checks_of(path) == ["path.loss"]


def test_a_faster_interface_that_is_not_used_is_found() -> None:
    path = good_path(interface="eth0")
    path.there.interfaces = {"eth0": 10_000, "eth1": 100_000}
    found = list(paths.verdict(path, ["node0", "node1"], None))
    assert [each.check for each in found] == ["path.interface"]
    assert "PCCL_SOCKET_IFNAME=eth1" in found[0].line
    path.interface = "eth1"
    assert checks_of(path) == []
    path.there.interfaces = {"eth0": 10_000, "eth1": 0}
    assert checks_of(path) == []


def test_the_failure_of_a_group_is_found() -> None:
    assert checks_of(good_path(failure="rank 1 is lost")) == ["path.group"]


def test_clocks_are_compared_with_those_of_most_hosts() -> None:
    found = {(0, 1): 5.0, (0, 2): 0.01, (1, 2): -5.0}
    measured = [good_path(*pair) for pair in found]
    for path, offset in zip(measured, found.values(), strict=True):
        path.there.offset_s, path.back.offset_s = offset, -offset
    offsets = clocks.offsets_of(measured)
    assert offsets == pytest.approx({0: -0.01, 1: 4.99, 2: 0.0})
    names = ["node0", "node1", "node2"]
    assert [each.where for each in clocks.check(measured, names)] == ["node1"]


@pytest.mark.parametrize("hosts", range(10))
def test_each_two_hosts_meet_once_in_a_tournament(hosts: int) -> None:
    rounds = tournament.rounds(hosts)
    pairs = [pair for each in rounds for pair in each]
    assert sorted(pairs) == [(a, b) for a in range(hosts) for b in range(a + 1, hosts)]
    for each in rounds:
        members = [member for pair in each for member in pair]
        assert len(members) == len(set(members))


def test_ranks_are_listed_as_ranges() -> None:
    assert listed([3]) == "rank 3"
    assert listed([7, 0, 1, 2, 9, 10]) == "ranks 0-2, 7, 9-10"


def test_ports_are_spread_over_the_range() -> None:
    ports = sample_ports(32768, 60999)
    assert len(ports) == 16
    assert ports == sorted(set(ports))
    assert 32768 <= ports[0] < ports[-1] <= 60999
    assert sample_ports(5000, 5003) == [5000, 5001, 5002, 5003]


def test_datagrams_of_others_are_ignored() -> None:
    token = bytes(range(16))
    packet = Packet(1, 7, 9, 1.5)
    data = encode(packet, token, 1472)
    assert len(data) == 1472
    assert decode(data, token) == packet
    assert decode(data, b"x" * 16) is None
    assert decode(data[:20], token) is None
    assert decode(b"", token) is None
    assert decode(b"\0" * 100, token) is None


class DictStore:
    """A store in this process."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        assert len(value) <= 64 << 10
        self.values[key] = value

    def look_up(self, key: str) -> bytes | None:
        return self.values.get(key)

    def add(self, key: str, delta: int) -> int:
        raise NotImplementedError


def test_values_travel_in_pieces() -> None:
    exchange = Exchange(DictStore(), "doctor").part("a")
    value = {"text": "x" * 200_000}
    exchange.publish("key", value)
    assert exchange.read("key", 0.0) == value
    with pytest.raises(Late, match="missing"):
        exchange.read("missing", 0.0)


@pytest.mark.parametrize("count", [b"", b"-1", b"0", b"99999999", b"x"])
def test_an_entry_of_nonsense_is_an_error(count: bytes) -> None:
    store = DictStore()
    store.values["doctor/key"] = count
    with pytest.raises(UnavailableError, match="pieces"):
        Exchange(store, "doctor").read("key", 0.0)


def test_an_entry_that_is_no_json_is_an_error() -> None:
    store = DictStore()
    store.values |= {"doctor/key": b"1", "doctor/key/0": b"{"}
    with pytest.raises(UnavailableError, match="no JSON"):
        Exchange(store, "doctor").read("key", 0.0)


def a_report() -> Report:
    path = good_path()
    path.there.answered = path.back.answered = 150
    findings = paths.check([path], ["node0", 'node"1'], one_machine=False)
    hosts = [HostRow("node0", [0]), HostRow('node"1', [1], clock_s=0.001)]
    return Report(merged(findings, [host.name for host in hosts]), hosts, [path], 1.5)


def test_a_report_has_three_forms() -> None:
    report = a_report()
    lines = list(show.text(report))
    assert any(re.match(r'node0 to node"1 .* 25\.0% .*path\.loss$', line) for line in lines)
    assert lines[-1] == "1 finding on 2 ranks on 2 hosts, 1.5 s"
    found = json.loads(json.dumps(report.as_json()))
    assert found["status"] == report.status == 1
    assert found["findings"][0]["check"] == "path.loss"
    assert found["paths"][0]["expected_bytes_per_s"] == 1.25e9


def test_metrics_have_the_format_of_prometheus() -> None:
    lines = metrics.prometheus(a_report()).splitlines()
    sample = re.compile(r'pccl_doctor_\w+(\{\w+="(\\.|[^"\\])*"(,\w+="(\\.|[^"\\])*")*\})? \S+')
    described = set()
    for line in lines:
        if line.startswith("# HELP "):
            described.add(line.split()[2])
        elif not line.startswith("# TYPE "):
            assert sample.fullmatch(line), line
            assert re.split(r"[{ ]", line)[0] in described
    assert 'pccl_doctor_path_lost_ratio{a="node0",b="node\\"1"} 0.25' in lines
    assert "pccl_doctor_status 1" in lines


def test_a_fault_of_all_paths_of_a_host_is_one_finding() -> None:
    lossy = [good_path(0, 1), good_path(1, 2), good_path(0, 2)]
    for path in lossy[:2]:
        path.there.answered = 100
    names = ["node0", "node1", "node2"]
    found = merged(paths.check(lossy, names, one_machine=False), names)
    assert [each.where for each in found] == ["node1 to each other host, as node0 to node1"]


@pytest.mark.parametrize(
    ("local", "checks"),
    [
        ({"speed": vars(Speed(1e-6, 1e-6, 1 << 20, 1e-4, 1e-4))}, []),
        ({"speed": vars(Speed(1e-6, 1e-6, 1 << 20, 3e-3, 1e-4))}, ["host.slow_memory"]),
        ({"speed": vars(Speed(1e-6, 1e-6, 1 << 20, 3e-3, 1e-4, waited=0.9))}, []),
        ({"failure": "no transport shm"}, ["host.shared_memory"]),
        (None, []),
    ],
)
def test_memory_that_is_slow_or_not_shared_is_found(
    local: dict[str, object] | None, checks: list[str]
) -> None:
    hosts = hosts_of(ranks_of(2))
    results = {rank: {"local": local} for rank in range(2)}
    report = evaluation.report(hosts, results, missing=[], silent=[])
    assert [each.check for each in report.findings] == checks


def test_findings_of_ranks_and_hosts_are_in_the_report() -> None:
    own = dataclasses.asdict(error("limits.pids", "few", "raise pids.max"))
    hosts = hosts_of(ranks_of(4, findings=[own]))
    results = {
        0: {"findings": [{**own, "check": "network.mtu", "severity": "warning"}], "paths": []},
        2: {"failure": "no memory"},
    }
    report = evaluation.report(hosts, results, missing=[7], silent=[3])
    found = [(each.severity, each.check, each.where) for each in report.findings]
    assert sorted(found) == [
        ("error", "job.failure", "node1"),
        ("error", "job.missing", "job"),
        ("error", "job.silent", "job"),
        ("error", "limits.pids", "node1"),
        ("warning", "network.mtu", "node0"),
    ]
    assert found[-1][0] == "warning"
    assert report.status == 1


@pytest.mark.multiproc
def test_odd_ranks_of_a_real_job_are_found(tmp_path: Path) -> None:
    odd = {
        1: Odd(environment={"PCCL_TCP_SOCKETS": "3"}),
        2: Odd(facts={"versions": {"pccl": "0.0.1"}}),
    }
    report, statuses = doctor_job.examine([""] * 3, tmp_path, odd)
    found = [(each.check, each.data.get("ranks")) for each in report.findings]
    assert ("agreement.setting", [1]) in found
    assert ("agreement.version", [2]) in found
    assert statuses == [1, 1, 1]


@pytest.mark.multiproc
def test_hosts_that_share_a_network_are_well(tmp_path: Path) -> None:
    odd = {1: Odd(environment={"PCCL_HOST_ID": "other"})}
    report, statuses = doctor_job.examine([""] * 2, tmp_path, odd)
    assert doctor_job.about_job(report) == []
    assert report.paths[0].speed is not None
    assert statuses == [report.status] * 2


@pytest.mark.multiproc
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="binding needs two cores")
def test_ranks_of_a_real_job_on_one_core_are_found(tmp_path: Path) -> None:
    core = frozenset({min(os.sched_getaffinity(0))})
    report, _ = doctor_job.examine([""] * 2, tmp_path, dict.fromkeys(range(2), Odd(cores=core)))
    assert "placement.binding" in [each.check for each in report.findings]


@pytest.mark.multiproc
def test_a_rank_that_does_not_come_is_found(tmp_path: Path) -> None:
    report, statuses = doctor_job.examine(
        [""] * 3, tmp_path, {2: Odd(is_absent=True)}, timeout_s=5.0
    )
    found = doctor_job.about_job(report)
    assert [each.check for each in found] == ["job.missing"]
    assert "rank 2" in found[0].line
    assert statuses == [1, 1]


@pytest.mark.multiproc
def test_a_rank_that_dies_is_found(tmp_path: Path) -> None:
    odd = {
        1: Odd(environment={"PCCL_HOST_ID": "other"}, dies=True),
    }
    report, statuses = doctor_job.examine([""] * 2, tmp_path, odd, silence_s=3.0)
    found = doctor_job.about_job(report)
    assert [each.check for each in found] == ["job.silent"]
    assert "rank 1" in found[0].line
    assert statuses == [1]
    assert report.paths_left_out == 1


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DOCTOR, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_exit_status_is_that_of_errors() -> None:
    good = run("--json")
    found = json.loads(good.stdout)
    assert good.returncode == found["status"]
    bad = run(PCCL_TCP_SOCKETS="many")
    assert bad.returncode == 1
    assert "error: a group of one rank cannot be made: PCCL_TCP_SOCKETS" in bad.stdout


def test_warnings_count_if_they_should() -> None:
    assert run(PCCL_TCP_SOCKET="2").returncode == run("--json").returncode
    assert run("--strict", PCCL_TCP_SOCKET="2").returncode == 1


def test_a_rank_that_reaches_nobody_examines_its_host() -> None:
    job = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    done = run("--timeout", "1", **job, MASTER_PORT=str(free_port()))
    assert done.returncode == 1
    assert "error: this rank does not reach the store of the job" in done.stdout
    assert "[job.meeting]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "--prometheus"], "pass one of them"),
        (["--peer", "a:1"], "pass --rdma, too"),
        (["--rdma", "--prometheus"], "--rdma has no --prometheus"),
    ],
)
def test_wrong_use_is_status_2(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.multiproc
@pytest.mark.parametrize(
    "launcher",
    [
        ["pccl", "run", "-n", "3", "-m", "pccl", "doctor", "--json"],
        ["torch.distributed.run", "--standalone", "--nproc-per-node", "3", "-m", "pccl", "doctor"],
    ],
    ids=["pccl run", "torchrun"],
)
def test_a_job_of_a_launcher_is_examined(launcher: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *launcher], capture_output=True, text=True, check=False, timeout=120
    )
    assert ('"ranks": [0, 1, 2]' in done.stdout) or ("on 3 ranks on 1 hosts" in done.stdout)
    assert done.returncode == ("error" in done.stdout)


def test_the_guide_lists_every_check() -> None:
    sources = Path(show.__file__).parents[1].rglob("*.py")
    pattern = re.compile(r'(?:error|warning|make)\(\s*"([a-z]+\.[a-z_]+)"')
    checks = {name for source in sources for name in pattern.findall(source.read_text())}
    listed_checks = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", DOCS.read_text(), re.MULTILINE)
    assert sorted(listed_checks) == sorted(checks)

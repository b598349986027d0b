# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor`` on one host: broken hosts are files below a fake root, or values of facts.

Each broken host has one finding, whose line names the setting to change; a healthy one has none.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl.diagnostics.doctor.finding import Finding, Subject, examine
from pccl.diagnostics.doctor.host import (
    cluster,
    cores,
    files,
    gpus,
    group,
    interfaces,
    limits,
    memory,
    network,
    plugins,
    privileges,
    versions,
)
from pccl.diagnostics.doctor.host.interfaces import Interface
from pccl.diagnostics.doctor.root import Root
from support.refused_calls import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 1 << 30
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max file size             {file}            unlimited            bytes
Max processes             96365                96365                processes
Max open files            {descriptors}                {hard}                files
Max locked memory         {locked}              unlimited              bytes
"""
HEALTHY_LIMITS = {
    "file": "unlimited",
    "descriptors": "65536",
    "hard": "1048576",
    "locked": "unlimited",
}
STATUS = """\
Name:	python
Uid:	{user}	{user}	{user}	{user}
CapEff:	{capabilities}
Seccomp:	0
Cpus_allowed_list:	{cores}
Mems_allowed_list:	{nodes}
"""
HEALTHY_STATUS = {
    "user": "1000",
    "capabilities": "0000000000000000",
    "cores": "0-7",
    "nodes": "0-1",
}
MEMORY = """\
MemTotal:       67108864 kB
MemAvailable:   50331648 kB
HugePages_Total:   {huge}
HugePages_Free:    {huge}
Hugepagesize:       2048 kB
"""
NODES = "/sys/devices/system/node"
V2, V1 = "/sys/fs/cgroup/job", "/sys/fs/cgroup/cpu/job"


@dataclasses.dataclass(frozen=True)
class FakeRoot(Root):
    """A root below a folder, whose /dev/shm has the given size."""

    shm: tuple[int, int] = (32 * GIB, 32 * GIB)

    def space(self, name: str) -> tuple[int, int] | None:
        return self.shm

    def put(self, name: str, text: str) -> None:
        """Write a file of the host."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def put_limits(self, **changes: str) -> None:
        self.put("/proc/self/limits", LIMITS.format(**{**HEALTHY_LIMITS, **changes}))

    def put_status(self, **changes: str) -> None:
        self.put("/proc/self/status", STATUS.format(**{**HEALTHY_STATUS, **changes}))


@pytest.fixture
def host(tmp_path: Path) -> FakeRoot:
    """Return a healthy host with two memory nodes, a network device and cgroups of version 2."""
    root = FakeRoot(tmp_path, environment={"HOME": "/home/user"})
    root.put_limits()
    root.put_status()
    root.put("/proc/meminfo", MEMORY.format(huge=0))
    root.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    root.put("/proc/self/cgroup", "0::/job\n")
    root.put(f"{V2}/cpu.max", "max 100000\n")
    root.put(f"{V2}/cpu.stat", "usage_usec 1\nnr_periods 1000\nnr_throttled 3\n")
    root.put(f"{V2}/memory.max", f"{32 * GIB}\n")
    root.put(f"{V2}/memory.current", f"{2 * GIB}\n")
    root.put(f"{V2}/pids.max", "max\n")
    root.put("/proc/sys/kernel/yama/ptrace_scope", "0\n")
    root.put("/proc/sys/kernel/overflowuid", "65534\n")
    root.put("/proc/sys/kernel/random/boot_id", "41844a79-4c76-4b6c-bd2a-2ab75061949d\n")
    for node, listed in enumerate(("0-3", "4-7")):
        root.put(f"{NODES}/node{node}/cpulist", f"{listed}\n")
    root.put("/sys/class/net/eth0/device/numa_node", "1\n")
    root.put("/sys/class/net/eth0/operstate", "up\n")
    root.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    root.path("/dev/shm").mkdir(parents=True)
    root.path("/home/user").mkdir(parents=True)
    return root


def privileges_without_filter(root: Root) -> privileges.Privileges:
    """Read permissions, but for the system calls that the machine of the test refuses."""
    return dataclasses.replace(privileges.read(root), refused=())


SUBJECTS: dict[str, Subject] = {
    "limits": (limits.read, limits.check),
    "cores": (cores.read, cores.check),
    "memory": (memory.read, memory.check),
    "privileges": (privileges_without_filter, privileges.check),
    "files": (files.read, files.check),
    "cluster": (cluster.read, cluster.check),
    "gpus": (gpus.read, gpus.check),
}


def findings_on(root: Root) -> list[Finding]:
    return [found for subject in SUBJECTS.values() for found in examine(subject, root)]


def test_a_healthy_host_has_no_finding(host: FakeRoot) -> None:
    assert findings_on(host) == []


def test_a_root_without_any_file_is_examined(tmp_path: Path) -> None:
    checks = {each.check for each in findings_on(FakeRoot(tmp_path, environment={}))}
    assert checks == {"memory.shm", "privileges.proc_sys", "files.cache"}


def use_cgroups_1(root: FakeRoot) -> None:
    root.put("/proc/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n")
    root.put("/proc/self/cgroup", "2:cpu,cpuacct:/job\n")


def few_descriptors(root: FakeRoot) -> None:
    root.put_limits(descriptors="64")


def few_permitted_descriptors(root: FakeRoot) -> None:
    root.put_limits(descriptors="512", hard="512")


def little_locked_memory(root: FakeRoot) -> None:
    root.put_limits(locked="65536")
    root.path("/sys/class/infiniband/mlx5_0").mkdir(parents=True)


def small_files(root: FakeRoot) -> None:
    root.put_limits(file="1048576")


def few_pids(root: FakeRoot) -> None:
    root.put(f"{V2}/pids.max", "100\n")
    root.put(f"{V2}/pids.current", "99\n")


def quota(root: FakeRoot) -> None:
    root.put(f"{V2}/cpu.max", "50000 100000\n")


def quota_of_version_1(root: FakeRoot) -> None:
    use_cgroups_1(root)
    root.put(f"{V1}/cpu.cfs_quota_us", "25000\n")
    root.put(f"{V1}/cpu.cfs_period_us", "100000\n")


def quota_of_the_parent(root: FakeRoot) -> None:
    root.put("/proc/self/cgroup", "0::/job/inner\n")
    root.put(f"{V2}/inner/cpu.max", "max 100000\n")
    root.put(f"{V2}/cpu.max", "75000 100000\n")


def throttled(root: FakeRoot) -> None:
    root.put(f"{V2}/cpu.stat", "nr_periods 1000\nnr_throttled 400\n")


def memory_of_another_node(root: FakeRoot) -> None:
    root.put_status(cores="4-7", nodes="0")


def far_device(root: FakeRoot) -> None:
    root.put_status(cores="0-3", nodes="0")


def slow_clock(root: FakeRoot) -> None:
    root.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")


def no_shm(root: FakeRoot) -> None:
    root.path("/dev/shm").rmdir()


def huge_pages(root: FakeRoot) -> None:
    root.put("/proc/meminfo", MEMORY.format(huge=30000))


def little_memory(root: FakeRoot) -> None:
    root.put(f"{V2}/memory.current", f"{32 * GIB - (1 << 20)}\n")


def ptrace_scope(root: FakeRoot) -> None:
    root.put("/proc/sys/kernel/yama/ptrace_scope", "1\n")


def unmapped_user(root: FakeRoot) -> None:
    root.put_status(user="65534")


def no_proc_sys(root: FakeRoot) -> None:
    root.path("/proc/sys/kernel/random/boot_id").unlink()


def driver_without_devices(root: FakeRoot) -> None:
    root.put(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n",
    )
    root.path("/proc/driver/nvidia/gpus/0000:18:00.0").mkdir(parents=True)


BROKEN: list[tuple[Callable[[FakeRoot], None], str, str]] = [
    (few_descriptors, "limits.descriptors", "ulimit -n 65536"),
    (few_permitted_descriptors, "limits.descriptors", "nofile"),
    (little_locked_memory, "limits.memlock", "ulimit -l unlimited"),
    (small_files, "limits.file_size", "ulimit -f unlimited"),
    (few_pids, "limits.pids", "pids.max"),
    (quota, "cores.quota", "cpu.max"),
    (quota_of_version_1, "cores.quota", "cpu.cfs_quota_us"),
    (quota_of_the_parent, "cores.quota", "is 0.75 cores"),
    (throttled, "cores.throttled", "40% of its periods"),
    (memory_of_another_node, "cores.memory_node", "cpuset.mems to 1"),
    (far_device, "cores.device_node", "--cpunodebind=1"),
    (slow_clock, "cores.clock", "clocksource=tsc"),
    (no_shm, "memory.shm", "--shm-size"),
    (huge_pages, "memory.huge_pages", "vm.nr_hugepages"),
    (little_memory, "memory.cgroup", "memory.max"),
    (ptrace_scope, "privileges.ptrace", "kernel.yama.ptrace_scope=0"),
    (unmapped_user, "privileges.user_namespace", "uid_map"),
    (no_proc_sys, "privileges.proc_sys", "PCCL_HOST_ID"),
    (driver_without_devices, "gpus.devices", "--gpus all"),
]


@pytest.mark.parametrize(
    ("breaks", "check", "setting"), BROKEN, ids=[each[0].__name__ for each in BROKEN]
)
def test_a_broken_host_has_one_finding_with_its_setting(
    host: FakeRoot, breaks: Callable[[FakeRoot], None], check: str, setting: str
) -> None:
    breaks(host)
    found = findings_on(host)
    assert [each.check for each in found] == [check]
    assert setting in found[0].line
    assert "\n" not in found[0].line


def test_a_small_shm_is_found(host: FakeRoot) -> None:
    small = dataclasses.replace(host, shm=(64 << 20, 1 << 20))
    assert [each.check for each in findings_on(small)] == ["memory.shm"]


def test_the_capability_replaces_the_ptrace_scope(host: FakeRoot) -> None:
    ptrace_scope(host)
    host.put_status(capabilities="0000000000080000")
    assert findings_on(host) == []


def test_cached_files_count_as_memory_that_is_left(host: FakeRoot) -> None:
    little_memory(host)
    host.put(f"{V2}/memory.stat", f"anon 1\ninactive_file {4 * GIB}\n")
    assert findings_on(host) == []


SECRETS = [
    ("", None, 0o600, "is empty"),
    ("/secret", None, 0o600, "No such file"),
    ("/secret", b"x" * 32, 0o644, "chmod 600"),
    ("/secret", b"short", 0o600, "has 5 bytes"),
]


@pytest.mark.parametrize(("name", "content", "mode", "setting"), SECRETS)
def test_a_bad_secret_is_found(
    host: FakeRoot, name: str, content: bytes | None, mode: int, setting: str
) -> None:
    if content is not None:
        host.path(name).write_bytes(content)
        host.path(name).chmod(mode)
    root = dataclasses.replace(host, environment={"HOME": "/home/user", "PCCL_SECRET_FILE": name})
    found = findings_on(root)
    assert [each.check for each in found] == ["files.secret"]
    assert setting in found[0].line


def test_a_good_secret_is_no_finding(host: FakeRoot) -> None:
    host.path("/secret").write_bytes(os.urandom(32))
    host.path("/secret").chmod(0o600)
    root = dataclasses.replace(
        host, environment={"HOME": "/home/user", "PCCL_SECRET_FILE": "/secret"}
    )
    assert findings_on(root) == []


def test_a_home_that_cannot_be_written_is_found(host: FakeRoot) -> None:
    # Files cannot be made in /proc, not even by root.
    root = dataclasses.replace(host, environment={"HOME": "/"})
    host.path("/.cache").symlink_to("/proc")
    found = findings_on(root)
    assert [each.check for each in found] == ["files.cache"]
    assert "XDG_CACHE_HOME" in found[0].line


def test_a_switch_that_does_not_answer_is_found(host: FakeRoot) -> None:
    with socket.create_server(("127.0.0.1", 0)) as switch, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (switch, closed)]
        addresses = [f"  - address: netconf://admin@127.0.0.1:{port}" for port in ports]
        host.put("/cluster.yaml", "\n".join(["switches:", *addresses]))
        root = dataclasses.replace(
            host, environment={"HOME": "/home/user", "PCCL_CLUSTER": "/cluster.yaml"}
        )
        found = findings_on(root)
    assert [each.check for each in found] == ["cluster.switch"]
    assert found[0].data["address"] == f"127.0.0.1:{ports[1]}"


def test_a_missing_cluster_file_is_found(host: FakeRoot) -> None:
    root = dataclasses.replace(
        host, environment={"HOME": "/home/user", "PCCL_CLUSTER": "/cluster.yaml"}
    )
    assert [each.check for each in findings_on(root)] == ["cluster.file"]


@pytest.mark.parametrize("call", NUMBERS)
def test_a_refused_system_call_is_found(call: str) -> None:
    program = (
        "import sys; sys.path[:] = " + repr([*sys.path, str(Path(__file__).parents[1])]) + "\n"
        "from support.refused_calls import refuse\n"
        "from pccl.diagnostics.doctor.finding import examine\n"
        "from pccl.diagnostics.doctor.host import privileges\n"
        "from pccl.diagnostics.doctor.root import Root\n"
        f"refuse({call!r})\n"
        "for each in examine((privileges.read, privileges.check), Root()): print(each.line)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert f"(seccomp mode 2) refuses {call}" in done.stdout
    assert f"allow {call} in the profile" in done.stdout


GOOD_NETWORK = network.Network(
    interfaces=(
        Interface("lo", is_loopback=True, mtu=65536, addresses=("127.0.0.1",)),
        Interface("eth0", mbit=100_000, mtu=9000, addresses=("10.0.0.1", "fd00::1")),
        Interface("eth1", is_up=False, has_carrier=False),
    ),
    name="node1",
)
VIRTUAL = (
    Interface("docker0", has_carrier=False, is_hardware=False, addresses=("172.17.0.1",)),
    Interface("tun0", mbit=10, is_hardware=False, addresses=("10.8.0.2",)),
)
ONLY_IPV6 = (Interface("eth0", addresses=("fd00::1",)),)
BAD_NETWORKS = [
    ({"requested": "ib"}, "network.selection", "name one of: eth0"),
    ({"requested": "eth1"}, "network.selection", "which is down"),
    ({"name_failure": "Name or service not known"}, "network.host_name", "/etc/hosts"),
    (
        {"meeting": "node0", "meeting_failure": "Name or service not known"},
        "network.meeting_place",
        "set MASTER_ADDR",
    ),
    (
        {"interfaces": ONLY_IPV6, "meeting": "10.0.0.9", "meeting_addresses": ("10.0.0.9",)},
        "network.family",
        "set MASTER_ADDR to the IPv6 address",
    ),
    ({"ports": (60000, 60100)}, "network.ports", "ip_local_port_range"),
    (
        {"interfaces": (Interface("eth0", is_up=False, addresses=("10.0.0.1",)),)},
        "network.interface",
        "ip link set eth0 up",
    ),
    (
        {"interfaces": (Interface("eth0", has_carrier=False, addresses=("10.0.0.1",)),)},
        "network.interface",
        "check the cable of eth0",
    ),
    (
        {"interfaces": (Interface("eth0", mtu=576, addresses=("10.0.0.1",)),)},
        "network.mtu",
        "ip link set eth0 mtu 1500",
    ),
    (
        {"interfaces": (Interface("eth0", mbit=100, addresses=("10.0.0.1",)),)},
        "network.speed",
        "ethtool eth0",
    ),
]


@pytest.mark.parametrize(("changes", "check", "setting"), BAD_NETWORKS)
def test_a_broken_network_has_one_finding(
    changes: dict[str, object], check: str, setting: str
) -> None:
    found = list(network.check(dataclasses.replace(GOOD_NETWORK, **changes)))
    assert [each.check for each in found] == [check]
    assert setting in found[0].line


@pytest.mark.parametrize(
    "facts",
    [
        GOOD_NETWORK,
        dataclasses.replace(GOOD_NETWORK, requested="=eth0"),
        dataclasses.replace(GOOD_NETWORK, requested="^lo,docker"),
        dataclasses.replace(GOOD_NETWORK, requested="10.0.0.0/8"),
        dataclasses.replace(GOOD_NETWORK, interfaces=ONLY_IPV6),
        dataclasses.replace(GOOD_NETWORK, interfaces=(*GOOD_NETWORK.interfaces, *VIRTUAL)),
    ],
)
def test_a_good_network_has_no_finding(facts: network.Network) -> None:
    assert list(network.check(facts)) == []


def test_interfaces_are_those_of_the_kernel() -> None:
    found = {each.name: each for each in interfaces.read(Root())}
    assert set(found) == {name for _, name in socket.if_nameindex()}
    loopback = found["lo"]
    assert loopback.is_loopback
    assert not loopback.is_hardware
    assert loopback.is_up
    assert "127.0.0.1" in loopback.addresses
    assert loopback.mtu == int(Path("/sys/class/net/lo/mtu").read_text())


def test_gpus_that_this_process_cannot_use_are_found() -> None:
    good = gpus.Gpus(driver="550.54.15", listed=2, files=2)
    assert list(gpus.check(good)) == []
    for changes, check in (
        ({"has_control": False}, "gpus.control"),
        ({"has_kernels": False}, "gpus.kernels"),
        ({"path": "in host memory (GPU 0 does not reach GPU 1)"}, "gpus.peer_access"),
    ):
        assert [each.check for each in gpus.check(dataclasses.replace(good, **changes))] == [check]


def test_a_net_plugin_that_cannot_be_loaded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = {"file": "", "symbol": "", "name": "", "failure": "no such file\nas libnone.so"}
    monkeypatch.setattr(plugins._core, "net_plugin_report", lambda: failure)
    (found,) = plugins.check(plugins.read(Root(environment={"PCCL_NET_PLUGIN": "none"})))
    assert (found.check, found.severity) == ("plugins.net", "error")
    assert "no such file as libnone.so" in found.line
    assert list(plugins.check(plugins.read(Root(environment={})))) == []


def test_the_net_plugin_is_among_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    report = {"file": "a.so", "symbol": "ncclNetPlugin_v10", "name": "IB", "failure": ""}
    monkeypatch.setattr(plugins._core, "net_plugin_report", lambda: report)
    facts = versions.read(Root(environment={"PCCL_NET_PLUGIN": "ib"}))
    assert facts.net_plugin == "IB v10"
    assert facts.nccl_plugin == "v6 to v12"


def test_the_nccl_plugin_of_another_installation_is_found(tmp_path: Path) -> None:
    other = tmp_path / plugins.NCCL_PLUGIN
    root = Root(environment={"NCCL_NET_PLUGIN": str(other)})
    (missing,) = plugins.check(plugins.read(root))
    assert "is no plug-in that can be read" in missing.line
    other.write_bytes(b"\x7fELF\0ncclNetPlugin_v9\0ncclNetPlugin_v10\0")
    plugins._tables_of.cache_clear()
    (found,) = plugins.check(plugins.read(root))
    assert (found.check, found.severity) == ("plugins.nccl", "warning")
    assert f"names {other}, which is of another installation" in found.line
    own = Path(plugins._core.__file__).parent / plugins.NCCL_PLUGIN
    for name in (str(own), "libnccl-net-other.so", ""):
        assert list(plugins.check(plugins.read(Root(environment={"NCCL_NET_PLUGIN": name})))) == []


def test_torch_of_another_release_is_found() -> None:
    facts = versions.Versions(pccl="1.0", built_for_torch="2.13.0", torch="2.12.1")
    assert [each.check for each in versions.check(facts)] == ["versions.torch"]
    same = dataclasses.replace(facts, torch="2.13.1")
    assert list(versions.check(same)) == []
    assert list(versions.check(dataclasses.replace(facts, torch=""))) == []


@pytest.mark.parametrize(
    ("variable", "value", "check"),
    [
        ("PCCL_TCP_SOCKETS", "many", "group.settings"),
        ("PCCL_TRANSPORT", "tcp", "group.warning"),
    ],
)
def test_a_setting_that_pccl_refuses_is_found(variable: str, value: str, check: str) -> None:
    root = Root(environment={**os.environ, variable: value})
    found = examine((group.read, group.check), root)
    assert [each.check for each in found] == [check]
    assert variable in found[0].line


def test_settings_that_pccl_accepts_are_no_finding() -> None:
    assert examine((group.read, group.check), Root()) == []

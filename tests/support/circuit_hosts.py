"""Hosts joined by circuits: network namespaces around an optical switch, which NETCONF drives.

    h0 --opt0--+                    +-- mgmt0 of all hosts
    h1 --opt0--+-- optical switch   +-- the switch's NETCONF server, behind sshd
    h2 --opt0--+                    management bridge

A circuit is a tc redirect between two ports, one way; nothing else leaves a port of the switch. A
host reaches those to which it has a circuit by ``opt0``, and answers others over ``mgmt0``: the
way back of TCP, by routes that the bed sets with the circuits. Needs root, iproute2 and sshd.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import netconf_servers as servers
from support.optical_switch import Circuits, Device, serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PORT = 8300
_EXAMPLE = Path(__file__).parents[2] / "examples/train_phases.py"
_PHASES = {"ring": {"links": "ring"}, "reverse": {"links": [[0, 3], [3, 2], [2, 1], [1, 0]]}}
_RANKS = 4
_LONGEST_S = 240
_MOST_APART = 1e-4
_PROGRAM = Path(__file__).with_name("optical_switch.py")
_numbers = itertools.count()


def missing() -> str:
    """Say why there can be no such hosts here; empty: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not Path(servers.SSHD).exists():
        return "not installed: openssh-server (tools/setup_netconf_servers.sh)"
    try:
        with _namespace("pccl-try"):
            return ""
    except (OSError, subprocess.CalledProcessError):
        return "this machine does not let us make network namespaces"


def _run(*command: str, text: str = "") -> None:
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


@contextlib.contextmanager
def _namespace(name: str) -> Iterator[str]:
    full = f"{name}-{os.getpid()}-{next(_numbers)}"
    _ip("netns", "add", full)
    try:
        _ip("-n", full, "link", "set", "lo", "up")
        yield full
    finally:
        _ip("netns", "delete", full)


class Bed:
    """Hosts, their switch, and what runs on them."""

    def __init__(self, folder: Path, switch: str, management: str, hosts: Sequence[str]) -> None:
        self.folder, self.switch, self.management, self.hosts = folder, switch, management, hosts
        self.device = Device(self._apply)

    def description(self, phases: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cluster: a port of the switch for each host."""
        key = self.folder / "host_key.pub"
        return {
            "audit": str(self.folder / "audit.jsonl"),
            "switches": [
                {
                    "name": "ocs",
                    "address": f"netconf://{servers.user()}@10.78.0.254:{PORT}",
                    "host_key": servers.fingerprint(key),
                    "key_file": str(self.folder / "user_key"),
                    "confirm_timeout_s": 2,
                }
            ],
            "devices": [{"ports": {"ocs": rank + 1}} for rank in range(len(self.hosts))],
            "phases": dict(phases),
        }

    def start(self, rank: int, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Run a command on a host as a rank of a job of all."""
        told = {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(self.hosts)),
            "MASTER_ADDR": "10.78.0.1",
            "MASTER_PORT": "29500",
            "PCCL_TRANSPORTS": "tcp",
            "PCCL_SOCKET_IFNAME": "=opt0",
            "PCCL_MANAGEMENT_IFNAME": "=mgmt0",
            "GLOO_SOCKET_IFNAME": "mgmt0",
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[rank], *command],
            env={**os.environ, **told, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def train(self, *arguments: str) -> tuple[dict[str, Any], str]:
        """Run examples/train_phases.py on all hosts; give what rank 0 wrote, and what it said.

        Raises
        ------
        RuntimeError
            A rank failed; the text is what all of them said.
        """
        file, result = self.folder / "cluster.json", self.folder / "result.json"
        file.write_text(json.dumps(self.description(_PHASES)))
        command = (sys.executable, str(_EXAMPLE), "--json", str(result), *arguments)
        ranks = [
            self.start(rank, *command, PCCL_CLUSTER=str(file)) for rank in range(len(self.hosts))
        ]
        try:
            said = [rank.communicate(timeout=_LONGEST_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        if any(rank.returncode for rank in ranks):
            raise RuntimeError("\n".join(said))
        return json.loads(result.read_text()), said[0]

    def bytes_over_circuits(self) -> int:
        """Return what has come into the switch's ports."""
        counted = [f"/sys/class/net/p{i}/statistics/rx_bytes" for i in range(len(self.hosts))]
        told = subprocess.run(
            ["ip", "netns", "exec", self.switch, "cat", *counted],
            check=True,
            capture_output=True,
            text=True,
        )
        return sum(map(int, told.stdout.split()))

    def build(self) -> None:
        """Lay the cables; the switch is dark."""
        _ip("-n", self.management, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.management, "address", "add", "10.78.0.254/24", "dev", "br0")
        _ip("-n", self.management, "link", "set", "br0", "up")
        for rank, host in enumerate(self.hosts):
            self._add_cable(rank, host, "opt0", 77, (self.switch, f"p{rank}"))
            self._add_cable(rank, host, "mgmt0", 78, (self.management, f"m{rank}"))
            _ip("-n", self.management, "link", "set", f"m{rank}", "master", "br0")
            _run(*self._in(self.switch), "tc", "qdisc", "add", "dev", f"p{rank}", "ingress")
            for name in ("all", "opt0", "mgmt0"):
                _run(*self._in(host), "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
            for other in range(len(self.hosts)):
                address = ("lladdr", _hardware(other), "nud", "permanent", "dev", "opt0")
                _ip("-n", host, "neigh", "replace", f"10.77.0.{other + 1}", *address)
        self._set_routes({})

    @staticmethod
    def _in(namespace: str) -> tuple[str, ...]:
        return ("ip", "netns", "exec", namespace)

    @staticmethod
    def _add_cable(rank: int, host: str, name: str, net: int, end: tuple[str, str]) -> None:
        hardware = ("address", _hardware(rank)) if name == "opt0" else ()
        peer = ("type", "veth", "peer", "name", end[1], "netns", end[0])
        _ip("link", "add", name, "netns", host, *hardware, *peer)
        _ip("-n", host, "address", "add", f"10.{net}.0.{rank + 1}/24", "dev", name)
        _ip("-n", host, "link", "set", name, "up")
        _ip("-n", end[0], "link", "set", end[1], "up")

    def _apply(self, before: Circuits, after: Circuits) -> None:
        lines = [
            f"filter del dev p{ingress - 1} parent ffff: prio 1"
            for ingress, egress in before.items()
            if after.get(ingress) != egress
        ]
        lines += [
            f"filter add dev p{ingress - 1} parent ffff: protocol all prio 1 u32 match u32 0 0 "
            f"action mirred egress redirect dev p{egress - 1}"
            for ingress, egress in after.items()
            if before.get(ingress) != egress
        ]
        _run(*self._in(self.switch), "tc", "-batch", "-", text="\n".join(lines) + "\n")
        self._set_routes(after)

    def _set_routes(self, circuits: Circuits) -> None:
        for rank, host in enumerate(self.hosts):
            lines = []
            for other in range(len(self.hosts)):
                if other == rank:
                    continue
                is_joined = circuits.get(rank + 1) == other + 1
                way = "dev opt0" if is_joined else f"via 10.78.0.{other + 1} dev mgmt0"
                lines.append(f"route replace 10.77.0.{other + 1}/32 {way}")
            _run("ip", "-n", host, "-batch", "-", text="\n".join(lines) + "\n")


def _hardware(rank: int) -> str:
    return f"02:00:00:00:00:{rank + 1:02x}"


@contextlib.contextmanager
def circuit_hosts(count: int) -> Iterator[Bed]:
    """Give so many hosts, and a switch between them that is dark."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pccl-circuits-")))
        names = ["pccl-ocs", "pccl-mgmt", *(f"pccl-h{rank}" for rank in range(count))]
        switch, management, *hosts = [stack.enter_context(_namespace(name)) for name in names]
        bed = Bed(folder, switch, management, hosts)
        bed.build()
        path = folder / "device.sock"
        stack.enter_context(serving(bed.device, path))
        servers.make_keys(folder)
        stack.enter_context(
            servers.sshd(
                folder,
                ports=[PORT],
                address="10.78.0.254",
                subsystem=f"{sys.executable} {_PROGRAM} {path}",
                prefix=("ip", "netns", "exec", management),
            )
        )
        yield bed


def main() -> None:
    """Train with and without switching, and compare the losses."""
    if why := missing():
        sys.exit(f"demo-phases: {why}")
    with circuit_hosts(_RANKS) as bed:
        switched, said = bed.train()
        print(f"on {_RANKS} hosts, switched at each epoch:\n{said}")
        stayed, said = bed.train("--stay")
        print(f"switched once:\n{said}")
    pairs = zip(switched["losses"], stayed["losses"], strict=True)
    apart = max(abs(one - other) / other for one, other in pairs)
    print(f"losses differ by at most {apart:.1e}")
    if apart > _MOST_APART:
        sys.exit("they should not by more than rounding")


if __name__ == "__main__":
    main()

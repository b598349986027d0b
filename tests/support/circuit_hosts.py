# SPDX-License-Identifier: Apache-2.0
"""Hosts joined by circuits: network namespaces around an optical switch, which NETCONF drives.

    h0 --opt0, opt1--+                    +-- mgmt0 of all hosts
    h1 --opt0, opt1--+-- optical switch   +-- the switch's NETCONF server, behind sshd
    h2 --opt0, opt1--+                    management bridge

A circuit is a tc redirect between two ports, one way; nothing else leaves a port of the switch. A
host has one address for data, that of ``opt0``, and reaches those to which it has a circuit by the
port of that. With one port a ring goes one way, and TCP's way back is over ``mgmt0``; with two it
goes both ways. The bed sets the routes for either with the circuits. Needs root, iproute2 and sshd.

    PYTHONPATH=tests python -m support.circuit_hosts --hosts 8 --epochs 201 --settle-ms 25
    PYTHONPATH=tests python -m support.circuit_hosts --hosts 4 --ports 2
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import netconf_servers as servers
from support.optical_switch import Circuits, Device, serving
from support.termination import ended_by_sigterm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PORT = 8300
_EXAMPLE = Path(__file__).parents[2] / "examples/train_phases.py"
_LONGEST_S = 900
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


class _Batch:
    """A program of iproute2 that does line after line: to start one takes longer than a switch."""

    def __init__(self, *command: str, question: str) -> None:
        self._question = question  # answered by one line, once all before it is done
        self._process = subprocess.Popen(
            ["stdbuf", "-oL", *command, "-batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, lines: Sequence[str]) -> None:
        reported, answers = self._process.stdin, self._process.stdout
        assert reported is not None
        assert answers is not None
        reported.write("".join(f"{line}\n" for line in [*lines, self._question]))
        reported.flush()
        if not answers.readline():
            raise RuntimeError(f"refused one of {list(lines)}")

    def close(self) -> None:
        self._process.communicate()


class Bed:
    """Hosts, their switch, and what runs on them."""

    def __init__(
        self, folder: Path, switch: str, management: str, hosts: Sequence[str], ports: int = 1
    ) -> None:
        self.folder, self.switch, self.management, self.hosts = folder, switch, management, hosts
        self.ports = ports  # of each host, at the switch
        self.device = Device(self._apply)
        self.settle_ms = 0  # without light, while mirrors move
        self._light: threading.Timer | None = None
        in_switch = ("ip", "netns", "exec", switch, "tc")
        self._circuits = _Batch(*in_switch, question="qdisc show dev lo")
        self._routes = [_Batch("ip", "-o", "-n", host, question="link show lo") for host in hosts]

    def close(self) -> None:
        """End what the bed runs."""
        for batch in (self._circuits, *self._routes):
            batch.close()

    def description(self, phases: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cluster: the ports of the switch for each host."""
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
                    "settle_ms": self.settle_ms,
                }
            ],
            "devices": [
                {"ports": {"ocs": [self._port(rank, i) for i in range(self.ports)]}}
                for rank in range(len(self.hosts))
            ],
            "phases": dict(phases),
        }

    def start(self, rank: int, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Run a command on a host as a rank of a job of all."""
        reported = {
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
            env={**os.environ, **reported, **environment},
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
        count, duplex = len(self.hosts), self.ports > 1
        backwards = [[rank, (rank - 1) % count] for rank in range(count)]
        phases = {
            "ring": {"links": "ring", "duplex": duplex},
            "reverse": {"links": backwards, "duplex": duplex},
        }
        return self.run(phases, sys.executable, str(_EXAMPLE), *arguments)

    def run(self, phases: Mapping[str, Any], *command: str) -> tuple[Any, str]:
        """Run a program on all hosts; give the JSON that rank 0 wrote to $RESULT, and its output.

        Raises
        ------
        RuntimeError
            A rank failed; the text is what all of them said.
        """
        file, result = self.folder / "cluster.json", self.folder / "result.json"
        file.write_text(json.dumps(self.description(phases)))
        reported = {"PCCL_CLUSTER": str(file), "RESULT": str(result)}
        ranks = [self.start(rank, *command, **reported) for rank in range(len(self.hosts))]
        try:
            printed = [rank.communicate(timeout=_LONGEST_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        if any(rank.returncode for rank in ranks):
            raise RuntimeError("\n".join(printed))
        return json.loads(result.read_text()), printed[0]

    def limit(self, mbit: float) -> None:
        """Give every port of a host this rate, by a token bucket."""
        for host in self.hosts:
            rate = ("tbf", "rate", f"{mbit}mbit", "burst", "256kb", "latency", "20ms")
            for name in self._optical:
                _run(*self._in(host), "tc", "qdisc", "replace", "dev", name, "root", *rate)

    def bytes_over_circuits(self) -> int:
        """Return what has come into the switch's ports."""
        ports = range(1, len(self.hosts) * self.ports + 1)
        counted = [f"/sys/class/net/p{port}/statistics/rx_bytes" for port in ports]
        return sum(map(int, self._output(self.switch, "cat", *counted).split()))

    def bytes_over_management(self) -> int:
        """Return what hosts have sent over the management network."""
        counted = "/sys/class/net/mgmt0/statistics/tx_bytes"
        return sum(int(self._output(host, "cat", counted)) for host in self.hosts)

    def tcp_timeouts(self) -> int:
        """Return how often a host's TCP has waited in vain for what it sent."""
        return sum(map(self._tcp_timeouts_of, self.hosts))

    def _tcp_timeouts_of(self, host: str) -> int:
        reported = self._output(host, "cat", "/proc/net/netstat")
        rows = [line.split() for line in reported.splitlines() if line.startswith("TcpExt:")]
        return int(dict(zip(*rows, strict=True))["TCPTimeouts"])

    def build(self) -> None:
        """Lay the cables; the switch is dark."""
        _ip("-n", self.management, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.management, "address", "add", "10.78.0.254/24", "dev", "br0")
        _ip("-n", self.management, "link", "set", "br0", "up")
        for rank, host in enumerate(self.hosts):
            for i, name in enumerate(self._optical):
                self._add_port(rank, name, self._port(rank, i))
            _ip("-n", host, "address", "add", f"10.77.0.{rank + 1}/24", "dev", "opt0")
            self._add_cable(host, "mgmt0", (self.management, f"m{rank}"))
            _ip("-n", host, "address", "add", f"10.78.0.{rank + 1}/24", "dev", "mgmt0")
            _ip("-n", self.management, "link", "set", f"m{rank}", "master", "br0")
            for name in ("all", "mgmt0", *self._optical):
                _run(*self._in(host), "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
        self._set_routes({})

    @property
    def _optical(self) -> list[str]:
        """The names of a host's optical ports."""
        return [f"opt{i}" for i in range(self.ports)]

    def _port(self, rank: int, index: int) -> int:
        """Return the switch's port at which an optical port of a host is."""
        return rank * self.ports + index + 1

    def _place(self, port: int) -> tuple[int, str]:
        """Return the host at a port of the switch, and the name of the port there."""
        return (port - 1) // self.ports, f"opt{(port - 1) % self.ports}"

    def _add_port(self, rank: int, name: str, port: int) -> None:
        host = self.hosts[rank]
        self._add_cable(host, name, (self.switch, f"p{port}"), "address", _hardware(rank))
        _run(*self._in(self.switch), "tc", "qdisc", "add", "dev", f"p{port}", "ingress")
        for other in range(len(self.hosts)):
            address = ("lladdr", _hardware(other), "nud", "permanent", "dev", name)
            _ip("-n", host, "neigh", "replace", f"10.77.0.{other + 1}", *address)

    @classmethod
    def _output(cls, namespace: str, *command: str) -> str:
        return subprocess.run(
            [*cls._in(namespace), *command], check=True, capture_output=True, text=True
        ).stdout

    @staticmethod
    def _in(namespace: str) -> tuple[str, ...]:
        return ("ip", "netns", "exec", namespace)

    @staticmethod
    def _add_cable(host: str, name: str, end: tuple[str, str], *hardware: str) -> None:
        peer = ("type", "veth", "peer", "name", end[1], "netns", end[0])
        _ip("link", "add", name, "netns", host, *hardware, *peer)
        _ip("-n", host, "link", "set", name, "up")
        _ip("-n", end[0], "link", "set", end[1], "up")

    def _apply(self, before: Circuits, after: Circuits) -> None:
        cut = [
            f"filter del dev p{ingress} parent ffff: prio 1"
            for ingress, egress in before.items()
            if after.get(ingress) != egress
        ]
        made = [
            f"filter add dev p{ingress} parent ffff: protocol all prio 1 u32 match u32 0 0 "
            f"action mirred egress redirect dev p{egress}"
            for ingress, egress in after.items()
            if before.get(ingress) != egress
        ]
        if self._light is not None:
            self._light.join()  # who switches before there is light waits for it
        self._circuits.run(cut)
        self._set_routes(after)
        self._light = threading.Timer(self.settle_ms / 1e3, self._circuits.run, [made])
        self._light.start()

    def _set_routes(self, circuits: Circuits) -> None:
        joined = {}
        for ingress, egress in circuits.items():
            rank, name = self._place(ingress)
            joined[rank, self._place(egress)[0]] = name
        for rank in range(len(self.hosts)):
            lines = []
            for other in range(len(self.hosts)):
                if other == rank:
                    continue
                name = joined.get((rank, other))
                way = f"dev {name}" if name else f"via 10.78.0.{other + 1} dev mgmt0"
                lines.append(f"route replace 10.77.0.{other + 1}/32 {way} src 10.77.0.{rank + 1}")
            self._routes[rank].run(lines)


def _hardware(rank: int) -> str:
    return f"02:00:00:00:00:{rank + 1:02x}"


@contextlib.contextmanager
def circuit_hosts(count: int, *, ports: int = 1) -> Iterator[Bed]:
    """Give so many hosts, and a switch between them that is dark; it has so many ports for each."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_by_sigterm())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pccl-circuits-")))
        names = ["pccl-ocs", "pccl-mgmt", *(f"pccl-h{rank}" for rank in range(count))]
        switch, management, *hosts = [stack.enter_context(_namespace(name)) for name in names]
        bed = Bed(folder, switch, management, hosts, ports)
        stack.callback(bed.close)
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


def _report(switches: Sequence[Mapping[str, Any]]) -> None:
    print(f"{len(switches)} switches, ms{'median':>12}{'p99':>8}{'longest':>9}")
    for name, what in [("switches_ms", "switches"), ("dark_ms", "dark"), ("job_ms", "job")]:
        times = sorted(each[name] for each in switches)
        late = times[len(times) * 99 // 100]
        print(f"  {what:<16}{statistics.median(times):>12.1f}{late:>8.1f}{times[-1]:>9.1f}")


def main() -> None:
    """Train with and without switching, and compare the losses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ports", type=int, default=1, help="of a host; 2: rings both ways")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--settle-ms", type=int, default=0)
    wanted = parser.parse_args()
    if why := missing():
        sys.exit(f"demo-phases: {why}")
    with circuit_hosts(wanted.hosts, ports=wanted.ports) as bed:
        bed.settle_ms = wanted.settle_ms
        epochs = ("--epochs", str(wanted.epochs))
        switched, printed = bed.train(*epochs)
        timeouts = bed.tcp_timeouts()
        print(f"on {wanted.hosts} hosts, switched at each epoch:\n{printed}")
        stayed, printed = bed.train(*epochs, "--stay")
        print(f"switched once:\n{printed}")
    _report(switched["switches"])
    pairs = zip(switched["losses"], stayed["losses"], strict=True)
    apart = max(abs(one - other) for one, other in pairs) / stayed["losses"][0]
    print(f"losses differ by at most {apart:.1e} of the first")
    print(f"retransmission timeouts of TCP: {timeouts}")
    if apart > _MOST_APART:
        sys.exit("they should not by more than rounding")


if __name__ == "__main__":
    main()

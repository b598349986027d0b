# SPDX-License-Identifier: Apache-2.0
"""Writes between two sessions whose sockets take paths of different speeds, between namespaces.

    sudo python benchmarks/p2p_paths.py --rounds 5

Each data socket of the link is put on a path of its case, once it is there. Paths are queues behind
the receiving end of a veth pair, as those of a switch: each lets so many Mbit/s through, and drops
what it has no room for. The best there could be is the share of headers less than all paths of the
case together. Rates are those of the written bytes, medians over rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from common.namespaces import ADDRESSES, INTERFACE, joined_namespaces

from pccl import p2p

MIB = 1 << 20
QUEUE = "ifb0"
QUEUE_BYTES = 256 << 10
SEGMENTS = 4  # that travel together: fewer cost more time than there is
PAYLOAD = 1448 / 1514  # of a segment with its headers
PATIENCE = 120.0


@dataclass(frozen=True)
class Case:
    """Data socket i goes over path ``path_of[i]``, which lets ``rates[path_of[i]]`` Mbit/s by."""

    rates: tuple[int, ...]
    path_of: tuple[int, ...]

    def slower(self, divisor: int) -> Case:
        return Case(tuple(rate // divisor for rate in self.rates), self.path_of)

    def best(self) -> float:
        return PAYLOAD * sum(self.rates)

    def __str__(self) -> str:
        on = ", ".join(str(self.rates[path]) for path in self.path_of)
        return f"{len(self.path_of)} sockets on {on}; paths of {'+'.join(map(str, self.rates))}"


CASES = [
    Case((400, 400), (0, 1)),
    Case((400, 360), (0, 1)),
    Case((400, 200), (0, 1)),
    Case((400, 100), (0, 1)),
    Case((400, 400), (0, 0, 1, 1)),
    Case((400, 400), (0, 0, 0, 1)),
]


def serve(nbytes: int) -> None:
    """Register memory, tell of it, and take part no further: the far side of writes."""
    with p2p.Session("target", listen=INTERFACE, transports="tcp") as session:
        memory = session.register(np.zeros(nbytes, np.uint8))
        told = (session.connection_info(), memory.descriptor().serialize())
        print(*(part.hex() for part in told), flush=True)
        for line in sys.stdin:
            print(bool((memory.array() == int(line)).all()), flush=True)


def ask(nbytes: int, sockets: int, info: str, descriptor: str) -> None:
    """Write all of the memory as often as lines come, and say how long each took."""
    with p2p.Session(
        "initiator", listen=INTERFACE, transports="tcp", tcp_sockets=sockets
    ) as session:
        session.load(bytes.fromhex(info))
        remote = session.import_memory("target", bytes.fromhex(descriptor))
        local = session.register(np.zeros(nbytes, np.uint8))
        for line in sys.stdin:
            local.array()[:] = int(line)
            begin = time.perf_counter()
            session.write(local, remote).wait(PATIENCE)
            print(time.perf_counter() - begin, flush=True)


class End:
    """One of the two, in its namespace."""

    def __init__(self, namespace: str, *arguments: str) -> None:
        command = ["ip", "netns", "exec", namespace, sys.executable, __file__, *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str | None = None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line is not None:
            print(line, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError("an end of the benchmark has ended")
        return answer

    def end(self) -> None:
        self._process.communicate(timeout=PATIENCE)


def _tc(namespace: str, *arguments: str) -> None:
    subprocess.run(["tc", "-n", namespace, *arguments], check=True)


def prepare(namespace: str) -> None:
    """Make packets as short as a queue expects them, and wait until the cable is there."""
    short = f"ip -n {namespace} link set {INTERFACE} gso_max_segs {SEGMENTS}"
    subprocess.run(short.split(), check=True)
    deadline = time.monotonic() + PATIENCE
    state = ["ip", "-n", namespace, "-br", "link", "show", INTERFACE]
    while " UP " not in subprocess.run(state, check=True, capture_output=True, text=True).stdout:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{INTERFACE} does not come up")
        time.sleep(0.01)


def lay_paths(namespace: str, rates: tuple[int, ...]) -> None:
    """Put what comes into the namespace through queues; whatever has no path passes freely."""
    subprocess.run(["ip", "-n", namespace, "link", "add", QUEUE, "type", "ifb"], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", QUEUE, "up"], check=True)
    _tc(namespace, *f"qdisc add dev {INTERFACE} handle ffff: ingress".split())
    redirect = f"filter add dev {INTERFACE} parent ffff: protocol ip u32 match u32 0 0"
    _tc(namespace, *redirect.split(), *f"action mirred egress redirect dev {QUEUE}".split())
    _tc(namespace, *f"qdisc add dev {QUEUE} root handle 1: htb default 99".split())
    for path, rate in [*enumerate(rates, 1), (99, 20_000)]:
        width = f"rate {rate}mbit ceil {rate}mbit"
        add = f"class add dev {QUEUE} parent 1: classid 1:{path} htb {width} quantum 30000"
        _tc(namespace, *add.split(), *([] if path == 99 else ["burst", "32k", "cburst", "32k"]))
    for path in range(1, len(rates) + 1):
        queue = f"qdisc add dev {QUEUE} parent 1:{path} bfifo limit {QUEUE_BYTES}"
        _tc(namespace, *queue.split())


def data_ports(namespace: str, count: int) -> list[int]:
    """Return the ports of the connections on which most was sent."""
    command = ["ip", "netns", "exec", namespace, "ss", "-tnHiO", "dst", ADDRESSES[1]]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sent = {}
    for line in listed.splitlines():
        port = re.search(rf"{ADDRESSES[0].split('/')[0]}:(\d+)", line)
        count_sent = re.search(r"bytes_sent:(\d+)", line)
        if port and count_sent:
            sent[int(port[1])] = int(count_sent[1])
    return sorted(sorted(sent, key=sent.__getitem__)[-count:])


def direct(namespace: str, ports: list[int], case: Case) -> None:
    for port, path in zip(ports, case.path_of, strict=True):
        match = f"protocol ip u32 match ip sport {port} 0xffff flowid 1:{path + 1}"
        _tc(namespace, *f"filter add dev {QUEUE} parent 1:".split(), *match.split())


def measure(case: Case, nbytes: int, rounds: int) -> list[float]:
    """Return the Mbit/s of each round."""
    with joined_namespaces() as (here, there):
        for namespace in (here, there):
            prepare(namespace)
        lay_paths(there, case.rates)
        target = End(there, "--as", "target", "--bytes", str(nbytes))
        told = target.ask().split()
        sockets = len(case.path_of)
        options = ["--bytes", str(nbytes), "--sockets", str(sockets), "--told", *told]
        initiator = End(here, "--as", "initiator", *options)
        initiator.ask("1")
        direct(there, data_ports(here, sockets), case)
        initiator.ask("2")  # until windows are as wide as the paths
        speeds = []
        for value in range(3, 3 + rounds):
            speeds.append(8e-6 * nbytes / float(initiator.ask(str(value))))
            if target.ask(str(value)) != "True":
                raise RuntimeError("the memory does not have what was written")
        for end in (initiator, target):
            end.end()
    return speeds


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--bytes", type=int, default=64 * MIB)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--divide", type=int, default=1, help="rates by so much, where the machine is busy"
    )
    parser.add_argument("--cases", type=int, nargs="+", default=list(range(len(CASES))))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--as", dest="role", help=argparse.SUPPRESS)
    parser.add_argument("--sockets", type=int, default=2, help=argparse.SUPPRESS)
    parser.add_argument("--told", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "target":
        serve(options.bytes)
        return 0
    if options.role == "initiator":
        ask(options.bytes, options.sockets, *options.told)
        return 0
    found = []
    for case in (CASES[number].slower(options.divide) for number in options.cases):
        speeds = measure(case, options.bytes, options.rounds)
        median = statistics.median(speeds)
        print(f"{case}: {median:.0f} Mbit/s of {case.best():.0f}", flush=True)
        found.append({"case": asdict(case), "mbit_per_s": speeds, "best": case.best()})
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

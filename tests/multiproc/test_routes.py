# SPDX-License-Identifier: Apache-2.0
"""Where a group's traffic goes on hosts with several interfaces: network namespaces as hosts."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from faults.network import (
    configure,
    enter,
    in_namespace,
    join,
    separate_namespaces,
    why_no_namespaces,
)
from support.launch import warm_processes
from support.two_hosts import bind_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

NO_NAMESPACES = why_no_namespaces()
pytestmark = pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")

PORT = 29517
Names = tuple[str, str]


@dataclass
class Case:
    """Two hosts, and how the ranks on them meet."""

    build: Callable[[Names], None]
    store: str  # "{folder}" is one that both have
    peers: set[str]  # where connections must lead, of IP addresses
    variables: dict[str, str] = field(default_factory=dict)
    hosts_file: str = ""
    begins_in: set[str] = field(default_factory=set)  # where one of the connections must lead


def _inner(name: str, interface: str, kind: str, *addresses: str) -> None:
    """Add an interface that leads nowhere outside, and is up all the same."""
    if kind == "veth":
        in_namespace(name, f"link add {interface} type veth peer name {interface}-in")
        in_namespace(name, f"link set {interface}-in up")
    else:
        in_namespace(name, f"link add {interface} type {kind}")
    configure(name, interface, *addresses)


def _both(names: Names, interface: str, kind: str, *addresses: str) -> None:
    for name in names:
        _inner(name, interface, kind, *addresses)


def bridge_older_than_the_network(names: Names) -> None:
    _both(names, "br0", "bridge", "172.17.0.1/16")
    join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))


def bridge_behind_a_gateway(names: Names) -> None:
    # Packets to the other's bridge have a route, and are lost there.
    _inner(names[0], "br0", "bridge", "172.17.0.1/16")
    _inner(names[1], "br0", "bridge", "172.18.0.1/16")
    join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))
    for name in names:
        in_namespace(name, "route add default via 10.77.0.9 dev net0 onlink")
        in_namespace(name, "neigh add 10.77.0.9 lladdr 02:00:00:00:00:99 dev net0")


def link_local_first(names: Names) -> None:
    _both(names, "usb0", "veth", "169.254.3.1/24")
    join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))


def first_network_not_shared(names: Names) -> None:
    for number, name in enumerate(names, 1):
        _inner(name, "nic0", "veth", f"10.5.0.{number}/24")
    join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))


def first_network_with_one_address(names: Names) -> None:
    _both(names, "nic0", "veth", "192.168.122.1/24")
    join(names, "net0", ("10.77.0.1/24", "10.77.0.2/24"))


def policy_route(names: Names) -> None:
    """Lay two networks; a rule sends packets to 10.9.9.1, of the store, through the second one."""
    join(names, "net0", ("10.1.0.1/24", "10.1.0.2/24"))
    join(names, "net1", ("10.2.0.1/24", "10.2.0.2/24"))
    in_namespace(names[0], "address add 10.9.9.1/32 dev net1")
    in_namespace(names[1], "route add 10.9.9.1/32 via 10.1.0.1")
    in_namespace(names[1], "rule add to 10.9.9.1 lookup 100")
    in_namespace(names[1], "route add 10.9.9.1/32 via 10.2.0.1 table 100")


def second_network_to_the_store(names: Names) -> None:
    join(names, "net0", ("10.1.0.1/24", "10.1.0.2/24"))
    join(names, "net1", ("10.2.0.1/24", "10.2.0.2/24"))


def ipv6_alone(names: Names) -> None:
    _both(names, "br0", "bridge", "fd00:17::1/64")
    join(names, "net0", ("fd77::1/64", "fd77::2/64"))


def ipv6_and_the_wrong_ipv4(names: Names) -> None:
    for number, name in enumerate(names, 1):
        _inner(name, "nic0", "veth", f"10.5.0.{number}/24")
    join(names, "net0", ("fd77::1/64", "fd77::2/64"))


def second_address_of_the_interface(names: Names) -> None:
    join(names, "net0", ("10.5.0.1/32", "10.6.0.1/32"))
    for number, name in enumerate(names, 1):
        configure(name, "net0", f"10.77.0.{number}/24")


NET0 = {"10.77.0.1", "10.77.0.2"}
FIRST_NETWORK = {"10.1.0.1", "10.1.0.2"}
SECOND_NETWORK = {"10.2.0.1", "10.2.0.2"}
AT_NET0 = f"tcp://10.77.0.1:{PORT}"
FILE = "file://{folder}/store"
CASES = {
    "bridge": Case(bridge_older_than_the_network, AT_NET0, NET0),
    "bridge-file": Case(bridge_older_than_the_network, FILE, NET0),
    "bridge-any-but-lo": Case(
        bridge_older_than_the_network, AT_NET0, NET0, {"PCCL_SOCKET_IFNAME": "^lo"}
    ),
    "bridge-prefixes": Case(
        bridge_older_than_the_network, FILE, NET0, {"PCCL_SOCKET_IFNAME": "br,net"}
    ),
    "bridge-hostname": Case(
        bridge_older_than_the_network,
        f"tcp://head.cluster:{PORT}",
        NET0,
        hosts_file="127.0.0.1 localhost\n10.77.0.1 head.cluster head\n",
    ),
    "bridge-gateway": Case(bridge_behind_a_gateway, FILE, NET0),
    "link-local": Case(link_local_first, AT_NET0, NET0),
    "link-local-file": Case(link_local_first, FILE, NET0),
    "not-shared": Case(first_network_not_shared, AT_NET0, NET0),
    "not-shared-file": Case(first_network_not_shared, FILE, NET0),
    "one-address": Case(first_network_with_one_address, AT_NET0, NET0),
    "one-address-file": Case(first_network_with_one_address, FILE, NET0),
    # A link begins in the network of the store, and the other one carries it, too.
    "policy-route": Case(
        policy_route,
        f"tcp://10.9.9.1:{PORT}",
        {"10.9.9.1"} | FIRST_NETWORK | SECOND_NETWORK,
        begins_in=SECOND_NETWORK,
    ),
    "second-network": Case(
        second_network_to_the_store,
        f"tcp://10.2.0.1:{PORT}",
        FIRST_NETWORK | SECOND_NETWORK,
        begins_in=SECOND_NETWORK,
    ),
    "second-network-alone": Case(
        second_network_to_the_store,
        f"tcp://10.2.0.1:{PORT}",
        SECOND_NETWORK,
        {"PCCL_SOCKET_IFNAME": "net1"},
    ),
    "ipv6": Case(ipv6_alone, f"tcp://[fd77::1]:{PORT}", {"fd77::1", "fd77::2"}),
    "ipv6-file": Case(ipv6_alone, FILE, {"fd77::1", "fd77::2"}),
    "ipv6-wrong-ipv4": Case(ipv6_and_the_wrong_ipv4, FILE, {"fd77::1", "fd77::2"}),
    "second-address": Case(second_address_of_the_interface, FILE, NET0),
}


def _peers() -> set[str]:
    """Return the IP addresses that this network namespace has connections to, but the store's."""
    listing = subprocess.run(
        ["ss", "-Htn", "state", "established"], check=True, capture_output=True, text=True
    ).stdout
    peers = set()
    for line in listing.splitlines():
        here, there = line.split()[-2:]
        if not {here.rpartition(":")[2], there.rpartition(":")[2]} & {str(PORT)}:
            peers.add(there.rpartition(":")[0].strip("[]").partition("%")[0])
    return peers


def reduce_and_look(comm: pccl.Communicator) -> set[str]:
    """Return where this rank's connections lead once both have sent."""
    x = np.full(1000, comm.rank + 1, np.float32)
    comm.all_reduce(x)
    assert (x == sum(range(1, comm.world_size + 1))).all(), x
    x = np.full(100_000, comm.rank + 1, np.float32)
    comm.all_reduce(x)
    assert (x == sum(range(1, comm.world_size + 1))).all(), x
    peers = _peers()
    comm.barrier()
    return peers


def _be_rank(
    work: Callable[[pccl.Communicator], Any],
    where: dict[str, Any],
    variables: dict[str, str],
    prepare: Callable[[], None] | None,
    to: Connection,
) -> None:
    # What the native code writes, in order to look at it.
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)
        os.environ.update(variables)
        outcome: Any
        try:
            if prepare is not None:
                prepare()
            comm = pccl.Communicator(**where, timeout=40)
            outcome = work(comm)
        except Exception as error:
            outcome = "".join(traceback.format_exception_only(error))
        errors.seek(0)
        to.send((outcome, errors.read().decode(errors="replace")))


class _Enter:
    """How a rank gets to its host; can be pickled."""

    def __init__(self, namespace: str, hosts_file: str = "") -> None:
        self.namespace, self.hosts_file = namespace, hosts_file

    def __call__(self) -> None:
        enter(self.namespace)
        if self.hosts_file:
            bind_over(self.hosts_file, "/etc/hosts")


def run(
    work: Callable[[pccl.Communicator], Any],
    store: str,
    prepare: list[Callable[[], None] | None],
    variables: list[dict[str, str]],
) -> list[tuple[Any, str]]:
    """Run a rank for each of ``prepare``; return what each returns, or its error, and its log."""
    context = warm_processes()
    ends = []
    with contextlib.ExitStack() as stack:
        for rank, (before, own) in enumerate(zip(prepare, variables, strict=True)):
            here, there = context.Pipe(duplex=False)
            where = {"rank": rank, "world_size": len(prepare), "rendezvous": store}
            process = context.Process(
                target=_be_rank, args=(work, where, own, before, there), daemon=True
            )
            process.start()
            stack.callback(process.kill)
            there.close()
            ends.append(here)
        outcomes = []
        for end in ends:
            assert end.poll(90), "a rank neither ended nor failed in time"
            outcomes.append(end.recv())
        return outcomes


@pytest.mark.parametrize("name", CASES)
def test_traffic_goes_where_the_hosts_meet(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    hosts_file = ""
    if case.hosts_file:
        (tmp_path / "hosts").write_text(case.hosts_file)
        hosts_file = str(tmp_path / "hosts")
    with separate_namespaces() as names:
        case.build(names)
        outcomes = run(
            reduce_and_look,
            case.store.format(folder=tmp_path),
            [_Enter(host, hosts_file) for host in names],
            [case.variables] * 2,
        )
    for rank, (peers, log) in enumerate(outcomes):
        assert isinstance(peers, set), f"rank {rank}: {peers}\n{log}"
        assert peers, "the ranks have connections"
        assert peers <= case.peers, f"rank {rank} is connected to {peers}\n{log}"


def test_a_refused_connection_names_interface_address_and_setting(tmp_path: Path) -> None:
    with separate_namespaces() as names:
        bridge_older_than_the_network(names)
        outcomes = run(
            reduce_and_look,
            FILE.format(folder=tmp_path),
            [_Enter(host) for host in names],
            [{"PCCL_SOCKET_IFNAME": "=br0"}] * 2,
        )
    for error, log in outcomes:
        assert isinstance(error, str), log
        assert re.search(r"172\.17\.0\.1:\d+", error), error
        assert "br0" in error, error
        assert "PCCL_SOCKET_IFNAME" in error, error


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
@pytest.mark.parametrize("name", ["bridge", "not-shared-file"])
def test_hosts_that_are_called_by_one_name_use_the_network(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    with separate_namespaces() as names:
        case.build(names)
        outcomes = run(
            reduce_and_look,
            case.store.format(folder=tmp_path),
            [_Enter(names[rank % 2]) for rank in range(4)],
            [{"PCCL_HOST_ID": "twin"}] * 4,
        )
    for rank, (peers, log) in enumerate(outcomes):
        assert isinstance(peers, set), f"rank {rank}: {peers}\n{log}"
    logs = "".join(log for _, log in outcomes)
    assert logs.count("share no memory") == 1, logs

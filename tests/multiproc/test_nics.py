# SPDX-License-Identifier: Apache-2.0
"""Groups between hosts with several interfaces: all of them carry data, and losing one loses none.

Hosts are network namespaces; a cable is a pair of interfaces, in a subnet of its own.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from faults.cables import Cable, Cabling, cabled_hosts, interface_of, ring_of
from faults.network import why_no_namespaces
from support.ranks_on_hosts import run_in_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pccl

MIB = 1 << 20
NO_NAMESPACES = why_no_namespaces()
pytestmark = pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")


def bytes_sent() -> dict[str, int]:
    """Return what has left this host by each interface."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
    split = (line.split(":") for line in lines)
    return {name.strip(): int(rest.split()[8]) for name, rest in split}


def sent_since(before: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in bytes_sent().items()}


def check_all(comm: pccl.Communicator, length: int) -> None:
    """Run the collectives on integers, whose results are known."""
    rank, ranks = comm.rank, comm.world_size
    base = np.arange(length, dtype=np.int64)
    x = base * (rank + 1)
    comm.all_reduce(x)
    np.testing.assert_array_equal(x, base * sum(range(1, ranks + 1)))
    out = np.zeros((ranks, length), np.int64)
    comm.all_gather(list(out), base + rank)
    np.testing.assert_array_equal(out, np.stack([base + other for other in range(ranks)]))
    x = base + 7 if rank == 0 else np.zeros_like(base)
    comm.broadcast(x, 0)
    np.testing.assert_array_equal(x, base + 7)
    part = np.zeros(length, np.int64)
    comm.reduce_scatter(part, [base + other for other in range(ranks)])
    np.testing.assert_array_equal(part, ranks * (base + rank))


def check_pairs(comm: pccl.Communicator, length: int) -> None:
    rank, ranks = comm.rank, comm.world_size
    base = np.arange(length, dtype=np.int64)
    out = np.zeros((ranks, length), np.int64)
    comm.all_to_all(list(out), [base + 100 * rank + other for other in range(ranks)])
    expected = np.stack([base + 100 * other + rank for other in range(ranks)])
    np.testing.assert_array_equal(out, expected)


def exchange(comm: pccl.Communicator) -> dict[str, int]:
    for length in (1, 1000, 33_333):
        check_all(comm, length)
        check_pairs(comm, length)
    # All paths have joined by now, or do so in this time.
    time.sleep(1)
    comm.barrier()
    before = bytes_sent()
    check_all(comm, MIB)
    check_pairs(comm, MIB)
    return sent_since(before)


def test_all_interfaces_carry_data(tmp_path: Path) -> None:
    # Where cables are no limit, but cores, a link gains nothing by further ones.
    with cabled_hosts(2, [Cable(0, 1, 50)] * 3) as hosts:
        for sent in run_in_namespaces(exchange, hosts.names, tmp_path):
            assert isinstance(sent, dict), sent
            total = sum(sent.values())
            assert all(sent[interface_of(n)] > total / 10 for n in range(3)), sent


def test_two_ranks_of_a_host_share_its_interfaces(tmp_path: Path) -> None:
    with cabled_hosts(2, [Cable(0, 1, 50)] * 2) as hosts:
        names = [hosts.names[host] for host in (0, 1, 0, 1)]
        for sent in run_in_namespaces(exchange, names, tmp_path):
            assert isinstance(sent, dict), sent
            total = sum(sent.values())
            assert all(sent[interface_of(n)] > total / 10 for n in range(2)), sent


def test_data_follows_the_speeds(tmp_path: Path) -> None:
    rates = [400, 400, 10]
    with cabled_hosts(2, [Cable(0, 1, rate) for rate in rates]) as hosts:
        for sent in run_in_namespaces(exchange, hosts.names, tmp_path):
            assert isinstance(sent, dict), sent
            fast, slow = sent[interface_of(0)], sent[interface_of(2)]
            assert slow > 0, sent
            assert fast > 2 * slow, sent


def test_named_interfaces_carry_all(tmp_path: Path) -> None:
    with cabled_hosts(2, [Cable(0, 1)] * 3) as hosts:
        variables = {"PCCL_SOCKET_IFNAME": "=eth0,eth2"}
        for sent in run_in_namespaces(exchange, hosts.names, tmp_path, **variables):
            assert isinstance(sent, dict), sent
            assert sent["eth1"] < 10_000, sent
            assert min(sent["eth0"], sent["eth2"]) > MIB, sent


def reduce_until_told(comm: pccl.Communicator, folder: Path, seconds: float) -> dict[str, int]:
    """Reduce for a time; the file ``begun`` appears when all paths are in use."""
    exchange(comm)
    base = np.arange(MIB, dtype=np.int64)
    end = time.monotonic() + seconds
    (folder / "begun").touch()
    goes_on = np.ones(1, np.int64)
    before = bytes_sent()
    is_mended = False
    while goes_on[0] == comm.world_size or goes_on[0] == 1:
        x = base * (comm.rank + 1)
        comm.all_reduce(x)
        np.testing.assert_array_equal(x, base * sum(range(1, comm.world_size + 1)))
        if not is_mended and (folder / "mended").exists():
            is_mended = True
            before = bytes_sent()
        goes_on[0] = int(time.monotonic() < end)
        comm.all_reduce(goes_on)
    return sent_since(before)


def after_begin(folder: Path, act: Callable[[], None]) -> None:
    deadline = time.monotonic() + 60
    while not (folder / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)
    act()


FAULTS: dict[str, Callable[[Cabling], None]] = {
    "cut": lambda hosts: hosts.cut(1),
    "down": lambda hosts: hosts.take_down(1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_interface_loses_nothing(tmp_path: Path, fault: str) -> None:
    with cabled_hosts(2, [Cable(0, 1, 400)] * 3) as hosts:
        found = run_in_namespaces(
            functools.partial(reduce_until_told, folder=tmp_path, seconds=4),
            hosts.names,
            tmp_path,
            lambda: after_begin(tmp_path, lambda: FAULTS[fault](hosts)),
        )
    assert all(isinstance(sent, dict) for sent in found), found
    for rank in range(2):
        lines = [
            line
            for line in (tmp_path / f"log{rank}").read_text().splitlines()
            if "carries nothing any more" in line
        ]
        assert len(lines) == 1, lines
        assert "eth1" in lines[0]
        assert "eth0" in lines[0]


def test_a_mended_cable_carries_data_again(tmp_path: Path) -> None:
    def cut_and_mend(hosts: Cabling) -> None:
        hosts.cut(1)
        time.sleep(3)
        hosts.mend(1)
        (tmp_path / "mended").touch()

    with cabled_hosts(2, [Cable(0, 1, 400)] * 2) as hosts:
        found: list[Any] = run_in_namespaces(
            functools.partial(reduce_until_told, folder=tmp_path, seconds=14),
            hosts.names,
            tmp_path,
            lambda: after_begin(tmp_path, lambda: cut_and_mend(hosts)),
        )
    for rank, sent in enumerate(found):
        assert isinstance(sent, dict), sent
        assert sent["eth1"] > MIB, sent
        assert "carries data again" in (tmp_path / f"log{rank}").read_text()


def test_cables_without_a_switch_make_a_ring(tmp_path: Path) -> None:
    # Each host reaches each other one over a cable of its own.
    with cabled_hosts(3, ring_of(3)) as hosts:
        for sent in run_in_namespaces(exchange, hosts.names, tmp_path):
            assert isinstance(sent, dict), sent

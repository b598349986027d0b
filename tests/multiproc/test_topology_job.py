# SPDX-License-Identifier: Apache-2.0
"""The topology of a job on several hosts: network namespaces, each a host of its own to PCCL."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from faults.network import enter, joined_namespaces, why_no_namespaces
from pccl import topology
from support.ranks_on_hosts import run_on_hosts

if TYPE_CHECKING:
    from pathlib import Path

NO_NAMESPACES = why_no_namespaces()


IN_TURNS = [0, 1, 0, 1]


def _look(comm: pccl.Communicator) -> dict[str, Any]:
    x = np.full(10_000, comm.rank + 1, np.float32)
    comm.all_reduce(x)
    out = np.zeros(400, np.int32)
    comm.all_gather(out, np.full(100, comm.rank, np.int32))
    job = topology.job(comm)
    explanation = pccl.explain("all_reduce", 1 << 26, comm)
    return {
        "sum": float(x[0]) if (x == x[0]).all() else None,
        "gathered": out.reshape(4, 100)[:, 0].tolist(),
        "digest": job.digest,
        "ranks": [host.ranks for host in job.hosts],
        "order": job.order,
        "link": job.links[0].bandwidth,
        "latency": job.links[0].latency,
        "same_subnet": job.links[0].same_subnet,
        "interfaces": [host.interface for host in job.hosts],
        "svg": len(job._repr_svg_() or ""),
        "explained": str(explanation),
        "ring": next(way.seconds for way in explanation.ways if way.algorithm == "ring"),
        "busiest": {way.algorithm: way.busiest for way in explanation.ways},
    }


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
@pytest.mark.parametrize("algorithm", ["", "all_reduce=ring,all_gather=ring"])
def test_two_hosts_with_ranks_in_turns(tmp_path: Path, algorithm: str) -> None:
    ranks = run_on_hosts(_look, IN_TURNS, tmp_path, PCCL_ALGORITHM=algorithm)
    first = ranks[0]
    for found in ranks:
        assert found == first, "every rank has the same job, and predicts the same"
    assert first["sum"] == 10
    assert first["gathered"] == [0, 1, 2, 3]
    assert first["ranks"] == [[0, 2], [1, 3]]
    assert first["order"] == [0, 2, 1, 3], "the ring leaves each host once"
    assert first["interfaces"] == ["veth0", "veth0"]
    assert first["link"] == 1.25, "a virtual cable says that it has 10 Gb/s"
    assert first["same_subnet"]
    assert first["svg"] > 1000
    assert re.search(
        r"counting on veth0 of \S+ and 1 like it: 1.25 GB/s, measured", first["explained"]
    )
    assert "in the order 0 2 1 3" in first["explained"]
    assert "veth0" in first["busiest"]["ring"]


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
def test_the_declared_speed_counts(tmp_path: Path) -> None:
    found = {}
    for megabits in (1000, 100_000):
        folder = tmp_path / str(megabits)
        folder.mkdir()
        file = folder / "topo.xml"
        net = f'<net name="veth0" dev="0" speed="{megabits}" port="0" guid="0x1" gdr="0"/>'
        file.write_text(f'<system version="1"><cpu numaid="0"><nic>{net}</nic></cpu></system>')
        ranks = run_on_hosts(_look, IN_TURNS, folder, PCCL_TOPO_FILE=str(file))
        assert "declared" in ranks[0]["explained"]
        found[megabits] = ranks[0]["ring"]
    # 2 * 3/4 of 64 MiB over 125 MB/s, on top of the CPU's time.
    assert found[1000] > 0.75
    assert found[100_000] < found[1000] / 5


def _measure(comm: pccl.Communicator) -> list[tuple[int, int, float, float]]:
    from pccl.topology import measure
    from pccl.topology import measure_hosts as networks

    found = networks.between_hosts(comm)
    hosts = topology.job(comm).hosts
    own = networks.of_host(found, hosts, comm.rank)
    if comm.rank in {host.ranks[0] for host in hosts}:
        machine = topology.detect()
        measure.save(measure.updated(measure.read(machine), own), measure.path(machine))
    return found


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
def test_what_was_measured_between_hosts_counts(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    ranks = run_on_hosts(_measure, IN_TURNS, tmp_path, **cache)
    assert ranks[1:] == ranks[:-1], "every rank has the same figures"
    ((one, other, us, gigabytes),) = ranks[0]
    assert (one, other) == (0, 1)
    assert us > 0
    assert gigabytes > 0
    (tmp_path / "later").mkdir()
    output = run_on_hosts(_look, IN_TURNS, tmp_path / "later", **cache)
    assert output[1:] == output[:-1]
    assert output[0]["link"] == pytest.approx(gigabytes, rel=1e-3)
    assert output[0]["latency"] == pytest.approx(us * 1e-6, rel=1e-3)
    assert re.search(
        r"counting on veth0 of \S+( and 1 like it)?: \S+ GB/s, measured", output[0]["explained"]
    )


def _measure_on_command_line(namespace: str, rank: int, port: int, cache: Path) -> None:
    enter(namespace)
    os.environ["XDG_CACHE_HOME"] = str(cache)
    meet = f"tcp://10.112.0.1:{port}"
    command = ["topo", "--measure", "--meet", meet, "--rank", str(rank), "--ranks", "2"]
    os.execv(sys.executable, [sys.executable, "-m", "pccl", *command])


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
def test_the_command_measures_and_keeps(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with joined_namespaces() as names:
        processes = [
            context.Process(
                target=_measure_on_command_line, args=(name, rank, 29500, tmp_path), daemon=True
            )
            for rank, name in enumerate(names)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
    (file,) = (tmp_path / "pccl").iterdir()
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    (network,) = lines
    kind, interface, _, us, gigabytes = network.split()
    assert (kind, interface) == ("network", "veth0")
    assert float(us) > 0
    assert float(gigabytes) > 0


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=NO_NAMESPACES or "")
def test_a_file_that_cannot_be_used_is_named_by_all(tmp_path: Path) -> None:
    for output in run_on_hosts(
        _look, IN_TURNS, tmp_path, PCCL_TOPO_FILE=str(tmp_path / "none.xml")
    ):
        assert "none.xml" in output

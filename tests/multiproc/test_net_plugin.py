# SPDX-License-Identifier: Apache-2.0
"""Groups and sessions over a net plug-in (tests/fakes/netplugin), and plug-ins that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import torch
import torch.distributed as dist

from support import fake_net_plugin
from support.group_calls import all_of_it
from support.launch import not_on_gloo, run_ranks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.multiproc, not_on_gloo("has no net plug-ins")]

TIMEOUT_S = 120.0


@pytest.mark.parametrize(
    ("version", "rules", "ranks"),
    [(6, "seed=6,null=30", 2), (8, "sizes=0", 4), (11, "align=1", 2), (12, "seed=1,null=50", 4)],
)
def test_a_group_calls_everything(version: int, rules: str, ranks: int) -> None:
    environment = fake_net_plugin.environment(version, rules)
    run_ranks(all_of_it, ranks, timeout_s=TIMEOUT_S, environment=environment)


def sends_and_leaves(rank: int, world_size: int) -> None:
    """Rank 0 ends at once after its last bytes, which rank 1 receives late."""
    values = torch.arange(50_000, dtype=torch.float32)
    if rank == 0:
        dist.isend(values, 1).wait()
        return
    time.sleep(0.5)
    received = torch.empty_like(values)
    dist.recv(received, 0)
    assert torch.equal(received, values)


def test_bytes_of_a_rank_that_has_ended_arrive() -> None:
    run_ranks(sends_and_leaves, 2, environment=fake_net_plugin.environment(9))


def repeat(values: torch.Tensor) -> None:
    for _ in range(10_000):
        dist.all_reduce(values)


def is_lost(rank: int, world_size: int) -> None:
    values = torch.ones(100_000)
    dist.all_reduce(values)
    if rank == 1:
        os._exit(0)
    with pytest.raises(RuntimeError, match="rank 1"):
        repeat(values)


def test_a_rank_that_dies_is_named() -> None:
    with pytest.raises(AssertionError, match="rank 1"):
        run_ranks(is_lost, 2, environment=fake_net_plugin.environment(10))


def fails_at_a_call(rank: int, world_size: int) -> str:
    values = torch.ones(300_000)
    with pytest.raises(RuntimeError) as raised:
        repeat(values)
    return str(raised.value)


@pytest.mark.parametrize("call", ["isend", "irecv", "test"])
def test_a_call_that_fails_ends_the_operation(call: str) -> None:
    environment = fake_net_plugin.environment(8, f"fail={call}:200")
    errors = run_ranks(fails_at_a_call, 2, environment=environment)
    assert any(f"ncclNetPlugin_v8: {call} fails: system error (2)" in text for text in errors)


@pytest.mark.parametrize("rules", ["fail=connect", "fail=accept", "fail=regMr", "no_comm=1"])
def test_a_link_that_cannot_be_opened_names_the_plugin(rules: str) -> None:
    environment = fake_net_plugin.environment(7, rules)
    errors = run_ranks(fails_at_a_call, 2, environment=environment)
    assert any("libnccl-net-strict_v7.so" in text for text in errors), errors


SUM = """
import sys
import numpy as np
import pccl
rank = int(sys.argv[1])
with pccl.Communicator(rank=rank, world_size=2, rendezvous="file://" + sys.argv[2]) as comm:
    values = np.ones(1000, np.float32)
    comm.all_reduce(values)
    assert (values == 2).all()
"""


def run_two(
    tmp_path: Path, rules: tuple[str, str] | None = None, **settings: str
) -> list[subprocess.CompletedProcess[str]]:
    """Run SUM on two ranks, with rules of the plug-in for each; return what both have printed."""
    environment = {**os.environ, "PCCL_SOCKET_IFNAME": "lo", **settings}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SUM, str(rank), str(tmp_path / "meeting")],
            env=environment | ({"PCCL_TEST_NET_PLUGIN": rules[rank]} if rules else {}),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    completed = []
    for process in processes:
        _, errors = process.communicate(timeout=TIMEOUT_S)
        completed.append(subprocess.CompletedProcess([], process.returncode, "", errors))
    return completed


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("fail=init", "ncclNetPlugin_v12: init fails: system error (2)"),
        ("crash=init", "init crashes (signal 11)"),
        ("exit=devices", "devices ends the process (status 3)"),
        ("devices=0", "devices returns 0 devices"),
        ("block=init", "init has not returned for 500 ms"),
    ],
)
def test_a_plugin_that_cannot_start_is_named_and_tcp_is_used(
    tmp_path: Path, rules: str, text: str
) -> None:
    plugin = str(fake_net_plugin.shared_object())
    for rank in run_two(
        tmp_path,
        PCCL_NET_PLUGIN=plugin,
        PCCL_TEST_NET_PLUGIN=rules,
        PCCL_HOST_ID="",
        PCCL_PEER_TIMEOUT_MS="500",
    ):
        assert rank.returncode == 0, rank.stderr
        (line,) = [line for line in rank.stderr.splitlines() if "net plug-in" in line]
        assert text in line
        assert "libnccl-net-strict.so" in line


def test_a_plugin_that_is_requested_by_name_must_start(tmp_path: Path) -> None:
    for rank in run_two(
        tmp_path, PCCL_NET_PLUGIN="certainly-none", PCCL_TRANSPORTS="netplugin,tcp"
    ):
        assert rank.returncode != 0
        assert "libnccl-net-certainly-none.so cannot be opened" in rank.stderr


def test_links_stay_on_a_rail_whatever_the_order_of_devices(tmp_path: Path) -> None:
    # The plug-in refuses connections between two rails.
    for rank in run_two(
        tmp_path,
        ("devices=3", "devices=3,rails=2"),
        PCCL_NET_PLUGIN=str(fake_net_plugin.shared_object(12)),
        PCCL_TRANSPORTS="netplugin",
    ):
        assert rank.returncode == 0, rank.stderr


def test_topo_shows_its_devices() -> None:
    environment = {**os.environ, **fake_net_plugin.environment(12)}
    command = [sys.executable, "-m", "pccl", "topo"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "net plug-in PcclStrict (ncclNetPlugin_v12, " in text.stdout
    assert "  strict1: port 2, 100 Gbit/s, guid 0x1001, rail 1" in text.stdout
    done = subprocess.run(
        [*command, "--json"], env=environment, capture_output=True, text=True, check=True
    )
    devices = json.loads(done.stdout)["net_plugin"]["devices"]
    assert [device["name"] for device in devices] == ["strict0", "strict1"]

# SPDX-License-Identifier: Apache-2.0
"""``pccl info``: what a report of a fault needs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

import pccl
from support import fake_verbs

if TYPE_CHECKING:
    from pathlib import Path


def info(**environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pccl", "info", "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_versions_are_those_that_run_here() -> None:
    found = info()
    assert found["pccl"] == pccl.__version__
    assert found["numpy"] == np.__version__
    assert found["python"] == platform.python_version()
    assert found["transport shm"] == found["transport tcp"] == "works"


def test_a_missing_transport_is_shown_with_the_reason() -> None:
    found = info(PCCL_SOCKET_IFNAME="nosuch")
    assert found["transport shm"] == "works"
    assert 'no running network interface fits "nosuch"' in found["transport tcp"]


def test_rdma_devices_are_shown_with_why_they_are_used_or_not(tmp_path: Path) -> None:
    devices = "mlx5_0:2:speed=edr:mtu=2048,mlx5_1:down,mlx5_2:ib:speed=ndr,rxe0,siw0"
    found = info(**fake_verbs.environment(tmp_path, FAKE_VERBS_DEVICES=devices))
    assert found["RDMA"] == str(fake_verbs.shared_object().resolve())
    facts = "ACTIVE, Ethernet, 100 Gb/s, MTU 2048"
    for number in (1, 2):
        row = found[f"RDMA mlx5_0:{number}"]
        assert row.startswith(f"usable: {facts}, GID 3 10.77.0.{number} (RoCE v2, ")
    assert found["RDMA mlx5_1:1"].startswith("not used: its state is DOWN; look at its cable")
    assert found["RDMA mlx5_2:1"] == (
        "not used: its link layer differs from the first port's "
        "(ACTIVE, InfiniBand, 400 Gb/s, MTU 4096)"
    )
    assert found["RDMA rxe0:1"].startswith("not used: an emulated device, which is used where ")
    assert "(emulated, ACTIVE, " in found["RDMA rxe0:1"]
    assert found["RDMA siw0:1"].startswith("not used: an iWARP device: ")
    assert found["RDMA mlx5_0, memory of GPUs"] == "by dmabuf"
    assert "RDMA rxe0, memory of GPUs" not in found
    assert found["transport verbs"] == "works"


def test_the_way_to_memory_of_gpus_has_reasons(tmp_path: Path) -> None:
    def way(**settings: str) -> str:
        environment = fake_verbs.environment(tmp_path, FAKE_VERBS_DEVICES="mlx5_0", **settings)
        return info(**environment)["RDMA mlx5_0, memory of GPUs"]

    assert way(FAKE_VERBS_DMABUF="0") == (
        "through pinned memory (dmabuf: the driver of mlx5_0 registers no dma-bufs; "
        "peermem: the module nvidia_peermem is not loaded)"
    )
    assert way(PCCL_IB_GPU="off") == "through pinned memory (PCCL_IB_GPU=off)"
    assert way(PCCL_IB_GPU="dmabuf") == "by dmabuf (PCCL_IB_GPU=dmabuf)"


def test_settings_choose_rdma_ports(tmp_path: Path) -> None:
    fabric = fake_verbs.environment(tmp_path, FAKE_VERBS_DEVICES="mlx5_0,rxe0")
    found = info(**fabric, PCCL_IB_HCA="=rxe0", PCCL_IB_GID_INDEX="1")
    assert found["RDMA mlx5_0:1"].startswith("not used: left out by PCCL_IB_HCA (")
    assert "GID 1 fe80::" in found["RDMA rxe0:1"]
    assert found["RDMA rxe0:1"].endswith("(PCCL_IB_GID_INDEX)")


def test_a_missing_library_of_rdma_is_shown(tmp_path: Path) -> None:
    missing = str(tmp_path / "libibverbs.so.1")
    found = info(PCCL_IBVERBS_LIBRARY=missing)
    assert found["RDMA"].startswith("PCCL_IBVERBS_LIBRARY: ")
    assert missing in found["RDMA"]
    assert found["transport verbs"] == found["RDMA"]


def test_a_machine_without_rdma_devices(tmp_path: Path) -> None:
    found = info(**fake_verbs.environment(tmp_path, FAKE_VERBS_DEVICES=","))
    assert found["RDMA"].endswith("; this machine shows no RDMA device")
    assert "no RDMA port is usable; this machine shows no RDMA device" in found["transport verbs"]


def test_the_share_of_cores_limits_helper_threads() -> None:
    helpers = info()["helper threads"]
    cores = int(helpers.split()[-3])
    assert 1 <= cores <= len(os.sched_getaffinity(0)), "fewer under a CPU quota"
    assert f"at most {max(cores // 2 - 1, 0)} with 2 ranks, " in helpers


def test_it_tells_of_the_lanes_of_sessions_and_why_there_are_none() -> None:
    lanes = info(PCCL_TCP_THREADS="2")["lanes of sessions"]
    assert lanes == "3 to another host of as many cores, 3 to one process of this host"
    lanes = info(PCCL_TCP_THREADS="0")["lanes of sessions"]
    assert "0 to one process of this host (PCCL_TCP_THREADS is 0 in this process)" in lanes
    lanes = info(PCCL_TCP_THREADS="many")["lanes of sessions"]
    assert lanes.startswith("unknown: ")
    assert "PCCL_TCP_THREADS" in lanes


def test_settings_are_named() -> None:
    found = info(PCCL_TCP_SOCKETS="3", PCCL_LOG_LEVEL="error")
    assert found["environment"] == ("PCCL_COSTS_FILE=off PCCL_LOG_LEVEL=error PCCL_TCP_SOCKETS=3")


def test_the_environment_comes_before_the_costs() -> None:
    names = list(info())
    costs = [name for name in names if name.startswith("cost")]
    assert costs
    assert names.index("environment") < min(map(names.index, costs))


def test_it_shows_whether_the_machine_is_tuned(tmp_path: Path) -> None:
    path = tmp_path / "tuning.txt"
    assert info(PCCL_TUNING_FILE=str(path))["tuning"] == f"{path}, not made yet: pccl tune"
    path.write_text("")
    assert info(PCCL_TUNING_FILE=str(path))["tuning"] == f"{path}, there"
    nowhere = info(HOME="", XDG_CACHE_HOME="")["tuning"]
    assert nowhere == "no file: set PCCL_TUNING_FILE, XDG_CACHE_HOME or HOME"


def test_settings_that_cannot_be_used_are_shown() -> None:
    found = info(PCCL_TCP_SOCKETS="0")
    wrong = 'PCCL_TCP_SOCKETS="0" is not usable: use a whole number from 1 to 16'
    assert found["GPUs"] == f"not looked for: {wrong}"
    assert found["transport shm"] == found["transport tcp"] == wrong


def test_it_shows_what_steps_cost_and_since_when(tmp_path: Path) -> None:
    path = tmp_path / "costs.txt"
    path.write_text("date 2026-11-25T21:40:03Z\ntook 28.8\nload 0.5\nquiet 1\nbeat 0.25\n")
    found = info(PCCL_COSTS_FILE=str(path))
    assert found["costs"] == f"measured 2026-11-25T21:40:03Z in 29 ms, load 0.5; {path}"
    assert found["cost of beat"].startswith("0.25 us, measured (")
    assert "us, default (" in found["cost of wake"]
    path.write_text("date 2026-11-25\ncores 4\nload 9\nquiet 1\ncopy 1 1 1 1\n")
    assert "while no other core was free" in info(PCCL_COSTS_FILE=str(path))["costs"]
    path.write_text("date 2026-11-25\ncores 1\nload 9\nquiet 1\ncopy 1 1 1 1\n")
    assert "on its only core" in info(PCCL_COSTS_FILE=str(path))["costs"]
    assert found["cost of caches"].startswith("32768 1048576 33554432 bytes")
    assert info()["costs"] == "defaults, nothing was measured; not kept"

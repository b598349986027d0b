# SPDX-License-Identifier: Apache-2.0
"""RDMA devices of the virtual machines (tools/rdma_machine.py), for tests that run there."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from support.launch import Machines

SYSFS = Path("/sys/class/infiniband")
DEVICES = ("rxe0", "rxe1")  # the second one reaches its own machine alone
WHERE = "make test-rdma runs it in virtual machines"
SECONDS = 150.0  # for all that waits: these machines are emulated

_ports = itertools.count(29_600)


def need_devices() -> None:
    """Skip the module where there are no such devices."""
    missing = [device for device in DEVICES if not (SYSFS / device).exists()]
    if missing:
        pytest.skip(f"no RDMA device {missing[0]} is here: {WHERE}", allow_module_level=True)


def peer() -> str | None:
    """Return the address of the other machine; None where there is none."""
    other = os.environ.get("PEER")
    return None if other == os.environ.get("ADDRESS") else other


def two_machines(*, other_stays: bool = True) -> Machines:
    """Return the place of this machine among two; skip where it is alone."""
    other, node = peer(), os.environ.get("NODE")
    if other is None or node is None:
        pytest.skip(f"needs two machines: {WHERE}")
    first = os.environ["ADDRESS"] if node == "1" else other
    return Machines(int(node) - 1, first, next(_ports), other_stays)


def over_verbs(**settings: str) -> dict[str, str]:
    """Return the environment of a process that may use verbs alone, on all devices that reach."""
    devices = DEVICES if peer() is None else DEVICES[:1]
    return {"PCCL_TRANSPORTS": "verbs", "PCCL_IB_HCA": ",".join(devices), **settings}


def sent_packets(device: str) -> int:
    """Return how many packets a device has sent since it was made."""
    return int((SYSFS / device / "ports/1/hw_counters/sent_pkts").read_text())


def path_mtu(device: str) -> int:
    """Return the most bytes of one packet."""
    netdev = Path(SYSFS / device / "parent").read_text().strip()
    mtu = int(Path(f"/sys/class/net/{netdev}/mtu").read_text())
    return max(size for size in (256, 512, 1024, 2048, 4096) if size + 80 <= mtu)


def is_active(device: str) -> bool:
    """Return whether the port of a device is up."""
    return (SYSFS / device / "ports/1/state").read_text().startswith("4:")

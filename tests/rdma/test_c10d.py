# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over RDMA devices of a virtual machine, and between two of them.

No other transport is permitted, and the devices have counted the packets.
"""

from __future__ import annotations

import pytest

from support import rdma
from support.group_calls import LARGE, all_of_it
from support.launch import Machines, run_ranks

rdma.need_devices()
pytestmark = pytest.mark.multiproc


def least_packets(world_size: int) -> int:
    """Return how many packets the three large all_reduces alone take, whatever the algorithm."""
    nbytes = LARGE * (4 + 2 + 8)
    return (world_size - 1) * nbytes // rdma.path_mtu("rxe0")


def run_over_verbs(world_size: int, machines: Machines | None = None) -> list[int]:
    """Run all of it, and return the packets that each device of this machine has sent for it."""
    before = [rdma.sent_packets(device) for device in rdma.DEVICES]
    run_ranks(
        all_of_it,
        world_size,
        timeout_s=rdma.SECONDS,
        environment=rdma.over_verbs(),
        machines=machines,
    )
    return [
        rdma.sent_packets(device) - sent for device, sent in zip(rdma.DEVICES, before, strict=True)
    ]


@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_of_one_machine_over_two_devices(world_size: int) -> None:
    packets = run_over_verbs(world_size)
    assert sum(packets) >= least_packets(world_size)
    assert all(packets), packets


@pytest.mark.two_machines
def test_ranks_of_two_machines() -> None:
    packets = run_over_verbs(2, rdma.two_machines())
    assert packets[0] >= least_packets(2) // 2
    assert packets[1] == 0

"""Hosts joined by an optical switch that NETCONF drives, and what a job on them notices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

from support import circuit_hosts, phase_soak

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.circuit_hosts import Bed

RANKS = 4
RING, REVERSE = {1: 2, 2: 3, 3: 4, 4: 1}, {1: 4, 4: 3, 3: 2, 2: 1}

pytestmark = pytest.mark.alone

no_hosts = circuit_hosts.missing()
no_server = phase_soak.missing()


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    with circuit_hosts.circuit_hosts(RANKS) as made:
        yield made


@pytest.mark.skipif(bool(no_hosts), reason=no_hosts or "all is there")
def test_training_over_circuits_that_are_switched_at_each_epoch(bed: Bed) -> None:
    switched = bed.train("--epochs", "4")[0]
    assert bed.device.running == REVERSE
    assert bed.bytes_over_circuits() > 10_000_000  # gradients: 4 epochs, 8 steps, 4 ranks
    stayed = bed.train("--epochs", "4", "--stay")[0]
    assert bed.device.running == RING
    assert [each["phase"] for each in switched["switches"]] == ["ring", "reverse"] * 2
    torch.testing.assert_close(switched["losses"], stayed["losses"], rtol=1e-4, atol=1e-5)
    events = [json.loads(line) for line in (bed.folder / "audit.jsonl").read_text().splitlines()]
    assert [each["outcome"] for each in events if each["event"] == "end"] == ["switched"] * 5


@pytest.mark.skipif(bool(no_hosts), reason=no_hosts or "all is there")
def test_two_ports_a_host_carry_a_ring_both_ways() -> None:
    with circuit_hosts.circuit_hosts(RANKS, ports=2) as bed:
        bed.train("--epochs", "2")
        circuits = bed.device.running
        assert len(circuits) == 2 * RANKS
        assert all(circuits[egress] == ingress for ingress, egress in circuits.items())
        data = bed.bytes_over_circuits()
        assert data > 1_000_000
        # Acknowledgements, too, take circuits: what is left are questions, and the rendezvous.
        assert bed.bytes_over_management() < data / 4


@pytest.mark.skipif(bool(no_server), reason=no_server or "all is there")
def test_a_short_soak() -> None:
    ended, faults = phase_soak.run(phase_soak.Soak(seed=3, switches=30, chance=0.04, kills=0.1))
    assert ended["switched"] > 10
    assert sum(faults.values()) > 0
    assert any(fault.startswith("kill of rank") for fault in faults)

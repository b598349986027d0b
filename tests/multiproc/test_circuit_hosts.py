# SPDX-License-Identifier: Apache-2.0
"""Hosts joined by an optical switch that NETCONF drives, and what a job on them notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from support import circuit_hosts, circuit_rank, phase_soak

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.circuit_hosts import Bed

RANKS = 4
TESTS = Path(__file__).parents[1]
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


@pytest.fixture
def dark_bed() -> Iterator[Bed]:
    """Circuits that other tests have left are of no phase here."""
    with circuit_hosts.circuit_hosts(RANKS) as made:
        yield made


def run_case(bed: Bed, case: str, phases: dict[str, Any]) -> Any:
    return bed.run(phases, sys.executable, circuit_rank.__file__, case)[0]


@pytest.mark.skipif(bool(no_hosts), reason=no_hosts or "all is there")
def test_a_program_that_switches_between_its_steps(dark_bed: Bed) -> None:
    phases = {
        "ring": {"links": "ring"},
        "apart1": {"links": [[0, 1], [2, 3]], "duplex": True},
        "apart2": {"links": [[0, 2], [1, 3]], "duplex": True},
    }
    found = run_case(dark_bed, "halving", phases)
    assert found == {"totals": [[10, 10], [10, 10]], "phase": "apart2"}
    assert dark_bed.device.running == RING
    # Rabenseifner 2004: each of 4 ranks sends 3/2 of its 8 MiB.
    assert dark_bed.bytes_over_circuits() > RANKS * 3 / 2 * (8 << 20)


@pytest.mark.skipif(bool(no_hosts), reason=no_hosts or "all is there")
def test_a_phase_whose_circuit_has_no_way_back_is_refused(dark_bed: Bed) -> None:
    phases = {"ring": {"links": "ring"}, "crossed": {"links": [[0, 1], [1, 3], [3, 2], [2, 0]]}}
    found = run_case(dark_bed, "way_back", phases)
    assert "rank 1 has a route to 10.77.0.1 by opt0, through which no link" in found["told"]
    assert "ip route replace 10.77.0.1 via 10.78.0.1 dev mgmt0" in found["told"]
    assert "\n" not in found["told"]
    assert (found["before"], found["total"]) == ("ring", RANKS)


@pytest.mark.skipif(bool(no_hosts), reason=no_hosts or "all is there")
def test_sigterm_leaves_no_host_behind() -> None:
    program = "import time; from support import circuit_hosts as c\n"
    program += "with c.circuit_hosts(2): print('up', flush=True); time.sleep(600)"
    command = [sys.executable, "-c", program]
    bed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS)
    assert bed.stdout is not None
    try:
        assert bed.stdout.readline() == "up\n"
        assert f"pccl-h0-{bed.pid}" in namespaces()
        bed.terminate()
        bed.wait(120)
    finally:
        bed.kill()
        bed.wait()
    assert f"-{bed.pid}-" not in namespaces()


def namespaces() -> str:
    return subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(bool(no_server), reason=no_server or "all is there")
def test_a_short_soak() -> None:
    ended, faults = phase_soak.run(phase_soak.Soak(seed=3, switches=30, chance=0.04, kills=0.1))
    assert ended["switched"] > 10
    assert sum(faults.values()) > 0
    assert any(fault.startswith("kill of rank") for fault in faults)

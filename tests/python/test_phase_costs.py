# SPDX-License-Identifier: Apache-2.0
"""The cost model against values worked out beforehand, by brute force over every link.

Tables T1 to T3: 100 Gb/s a port, alpha 5 us, delta 1 us. A1 is one port a rank, A2 two.
"""

from __future__ import annotations

import pytest

import pccl
from pccl import phase_costs
from pccl.phase_costs import Circuits
from support.switched_circuits import SWITCHED_IN_US, T1

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
US = 1e-6


def links(ranks: int, ports: int = 1) -> Circuits:
    return Circuits(ranks=ranks, bandwidth=12.5e9, ports=ports)


@pytest.mark.parametrize(("ranks", "ports", "nbytes", "ring", "halving", "swing", "switched"), T1)
def test_table_one(
    ranks: int,
    ports: int,
    nbytes: int,
    ring: float,
    halving: float | None,
    swing: float | None,
    switched: list[tuple[float, int] | None],
) -> None:
    on = links(ranks, ports)
    assert phase_costs.ring_all_reduce(on, nbytes) * 1e3 == pytest.approx(ring, abs=6e-4)
    if halving is not None and swing is not None:
        assert phase_costs.halving_doubling_on_ring(on, nbytes) * 1e3 == pytest.approx(
            halving, abs=6e-4
        )
        assert phase_costs.swing_on_ring(on, nbytes) * 1e3 == pytest.approx(swing, abs=6e-4)
    for micros, printed in zip(SWITCHED_IN_US, switched, strict=True):
        seconds, count = phase_costs.halving_doubling_switched(on, nbytes, micros * US)
        if printed:
            assert (seconds * 1e3, count) == (pytest.approx(printed[0], abs=6e-4), printed[1])


@pytest.mark.parametrize(
    ("ranks", "ratio"),
    [(8, 1.60), (16, 3.14), (32, 5.78), (64, 10.36), (128, 18.46), (256, 32.93), (1024, 106.63)],
)
def test_break_even_against_the_ring_depends_on_no_size(ranks: int, ratio: float) -> None:
    on = links(ranks)
    limit = phase_costs.break_even(on)
    assert limit / (on.alpha + on.delta) == pytest.approx(ratio, abs=6e-3)
    for nbytes in [64 * KIB, GIB]:
        ring = phase_costs.ring_all_reduce(on, nbytes)
        levels = ranks.bit_length() - 1
        switched = (
            sum(on.over_a_circuit(nbytes / 2 ** (level + 1)) for level in range(levels)) * 2
            + (2 * levels - 1) * limit
        )
        assert switched == pytest.approx(ring, rel=1e-9)


def test_table_two() -> None:
    on = links(64)
    assert phase_costs.all_to_all_on_ring(on, GIB) * 1e3 == pytest.approx(2706.2, abs=0.06)
    for reconfiguration, ms in [(1 * US, 85.0), (1e-3, 147.9), (25e-3, 1659.9)]:
        seconds = phase_costs.all_to_all_rotating(on, GIB, reconfiguration)
        assert seconds * 1e3 == pytest.approx(ms, abs=0.06)


@pytest.mark.parametrize(
    ("mib", "static", "switched"),
    [(16, 18.97, 27.43), (64, 75.34, 34.48), (256, 300.83, 62.67), (1024, 1202.8, 175.4)],
)
def test_table_three(mib: int, static: float, switched: float) -> None:
    on = links(64)
    groups = pccl.phase_costs.Operation("all_reduce", mib * MIB, size=8, stride=8)
    advice = pccl.phase_costs.advise([groups], on, reconfiguration=25e-3)
    assert advice.stay * 1e3 == pytest.approx(static, abs=0.06)
    assert advice.switched * 1e3 == pytest.approx(switched, abs=0.06)
    assert advice.switch == (static > switched)


def test_the_predictions_for_a_small_testbed() -> None:
    on = Circuits(ranks=8, bandwidth=0.115e9, alpha=100 * US, delta=0)
    nbytes = 64 * MIB
    assert phase_costs.ring_all_reduce(on, nbytes) * 1e3 == pytest.approx(1022.6, abs=0.06)
    assert phase_costs.all_to_all_on_ring(on, nbytes) * 1e3 == pytest.approx(2043.1, abs=0.6)
    assert phase_costs.all_to_all_rotating(on, nbytes, 25e-3) * 1e3 == pytest.approx(
        686.3, abs=0.06
    )
    assert phase_costs.group_on_ring(on, nbytes, size=4, stride=2) * 1e3 == pytest.approx(
        1751.3, abs=0.06
    )
    switched = phase_costs.group_switched(on, nbytes, size=4) + 25e-3
    assert switched * 1e3 == pytest.approx(900.9, abs=0.06)


def test_one_switch_serves_all_repetitions() -> None:
    on = links(64)
    one = pccl.phase_costs.Operation("all_reduce", 16 * MIB, size=8, stride=8)
    assert not pccl.phase_costs.advise([one], on, reconfiguration=25e-3).switch
    two = pccl.phase_costs.Operation("all_reduce", 16 * MIB, size=8, stride=8, times=2)
    assert pccl.phase_costs.advise([two], on, reconfiguration=25e-3).switch
    assert "switch: " in str(pccl.phase_costs.advise([two], on, reconfiguration=25e-3))


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="power of 2"):
        phase_costs.halving_doubling_on_ring(links(6), MIB)
    with pytest.raises(ValueError, match="at least 2 ranks"):
        links(1)
    with pytest.raises(ValueError, match="are no group of 64"):
        pccl.phase_costs.advise(
            [pccl.phase_costs.Operation("all_reduce", 1, size=8, stride=9)],
            links(64),
            reconfiguration=0,
        )
    with pytest.raises(ValueError, match="0 ranks 1 apart are no group"):
        pccl.phase_costs.advise(
            [pccl.phase_costs.Operation("all_reduce", 1, size=0)], links(64), reconfiguration=0
        )
    with pytest.raises(ValueError, match="all_reduce or all_to_all"):
        pccl.phase_costs.Operation("broadcast", 1)

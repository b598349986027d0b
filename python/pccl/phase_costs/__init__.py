# SPDX-License-Identifier: Apache-2.0
"""Cost model of collectives on circuits, and of switching the circuits.

Each rank has one transmitter and one receiver per port. Without switching, circuits form a ring,
which forwards messages to more distant ranks. A step in which the busiest link carries ``bytes``
costs

    alpha + hops * delta + bytes / bandwidth

and switching the circuits before a step adds ``reconfiguration`` seconds. The model is that of
papers on photonic collectives: "When Light Bends" (arXiv 2510.08072) and "Short-circuiting Rings"
(arXiv 2510.03491). With one port per rank the ring is unidirectional. With two ports it is
bidirectional, and a circuit between two ranks has the bandwidth of both ports.
"""

from pccl.phase_costs.advice import Advice, Cost, Operation, advise
from pccl.phase_costs.circuits import (
    Circuits,
    PairedStep,
    WithSwitches,
    all_to_all_on_ring,
    all_to_all_rotating,
    break_even,
    group_on_ring,
    group_switched,
    halving_doubling_on_ring,
    halving_doubling_switched,
    least_switched,
    ring_all_reduce,
    swing_on_ring,
)

__all__ = [
    "Advice",
    "Circuits",
    "Cost",
    "Operation",
    "PairedStep",
    "WithSwitches",
    "advise",
    "all_to_all_on_ring",
    "all_to_all_rotating",
    "break_even",
    "group_on_ring",
    "group_switched",
    "halving_doubling_on_ring",
    "halving_doubling_switched",
    "least_switched",
    "ring_all_reduce",
    "swing_on_ring",
]


def __dir__() -> list[str]:
    return sorted(__all__)

# SPDX-License-Identifier: Apache-2.0
"""Measured times of the steps of collectives on all ranks, beside simulated times.

>>> timeline.record(group)
>>> dist.all_reduce(x)
>>> found = timeline.gather(group)
>>> found.beside(capsule.replay(network, x.nbytes)).save_trace("ring.json")
"""

from pccl.timeline.recording import Timeline, gather, record
from pccl.timeline.steps import Hop, MeasuredStep

__all__ = ["Hop", "MeasuredStep", "Timeline", "gather", "record"]


def __dir__() -> list[str]:
    return sorted(__all__)

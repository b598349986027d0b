# SPDX-License-Identifier: Apache-2.0
"""Phases of a job: all ranks complete their operations, then the network is switched.

>>> def halves(comm):
...     x = numpy.ones(4)
...     pccl.switch_phase("ring")
...     comm.all_reduce(x)
...     with pccl.phase("pairs"):
...         part = comm.split(comm.rank % 2)
...         part.all_reduce(x)
...     return x[0]
>>> cluster = pccl.Cluster({
...     "devices": [{}] * 4,
...     "phases": {"ring": {"links": "ring"}, "pairs": {"links": [[0, 2], [1, 3]], "duplex": True}},
... })
>>> pccl.run(halves, ranks=4, cluster=cluster)
[8.0, 8.0, 8.0, 8.0]
"""

from pccl.phases.cluster import Cluster
from pccl.phases.results import SwitchError
from pccl.phases.switching import current_phase, phase, switch_phase

__all__ = ["Cluster", "SwitchError", "current_phase", "phase", "switch_phase"]


def __dir__() -> list[str]:
    return sorted(__all__)

# SPDX-License-Identifier: Apache-2.0
"""Simulation of collectives, message by message, on networks that need not exist.

>>> from pccl import simulator
>>> port = simulator.Speed(bandwidth=12.5e9, start=5e-6, hop=1e-6)
>>> network = simulator.Network.ring(64, port)
>>> print(simulator.replay("ring", "all_reduce", network, "16MB"))
ring: all_reduce of 16777216 bytes, 64 ranks, each like rank 0
  ...

A step begins when all of its dependencies are satisfied: the previous step, the steps in its
``after``, the arrival of its message, and a free slot for the message that it sends. A message
occupies its sender for ``start`` seconds and arrives after its last byte has left, plus ``hop``
seconds per hop. Each of n messages on a link has 1/n of the bandwidth; the most crowded link on its
path limits the rate of a message.

If the program of each rank is a rotation of the program of rank 0 and the network is rotationally
symmetric, all ranks have the times of rank 0. The simulator then runs rank 0 only: 16,384 ranks
take no longer than one. Otherwise it runs every step of every rank, up to 4 million steps.
"""

from pccl.simulator.networks import Network, Round, Speed, replay, replay_capsule, rounds
from pccl.simulator.replay_results import Replay
from pccl.simulator.replay_steps import StepTime

__all__ = ["Network", "Replay", "Round", "Speed", "StepTime", "replay", "replay_capsule", "rounds"]


def __dir__() -> list[str]:
    return sorted(__all__)

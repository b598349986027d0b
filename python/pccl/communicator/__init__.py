# SPDX-License-Identifier: Apache-2.0
"""The communicator over buffers, and what it takes and returns."""

from pccl._core import Communicator, Event, Memory, Operator, Prediction, PremulSum, Workspace

__all__ = ["Communicator", "Event", "Memory", "Operator", "Prediction", "PremulSum", "Workspace"]


def __dir__() -> list[str]:
    return sorted(__all__)

# SPDX-License-Identifier: Apache-2.0
"""Explanation of the choice of algorithm, or of the launches on GPUs, for a collective."""

from pccl.explanation.choices import Explanation, Way, explain
from pccl.explanation.gpus import GpuExplanation, GpuLaunch, Gpus

__all__ = ["Explanation", "GpuExplanation", "GpuLaunch", "Gpus", "Way", "explain"]


def __dir__() -> list[str]:
    return sorted(__all__)

# SPDX-License-Identifier: Apache-2.0
"""Execution of functions and scripts as the ranks of a job on this machine."""

from pccl.launch.job import RankError, run

__all__ = ["RankError", "run"]


def __dir__() -> list[str]:
    return sorted(__all__)

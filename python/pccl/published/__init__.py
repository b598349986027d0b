# SPDX-License-Identifier: Apache-2.0
"""Algorithms of papers without a built-in generator, written in ``pccl.lang``."""

from pccl.published.algorithms import (
    all_pairs,
    forwarded_all_to_all,
    switched_halving,
    two_step_all_to_all,
)

__all__ = ["all_pairs", "forwarded_all_to_all", "switched_halving", "two_step_all_to_all"]


def __dir__() -> list[str]:
    return sorted(__all__)

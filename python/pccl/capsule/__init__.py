# SPDX-License-Identifier: Apache-2.0
"""Capsules: files with programs of collectives, and functions that load them into groups."""

from pccl.capsule.loading import capsules, load_capsule, unload_capsule
from pccl.capsule.programs import Capsule
from pccl.results.loaded_capsule import LoadedCapsule

__all__ = ["Capsule", "LoadedCapsule", "capsules", "load_capsule", "unload_capsule"]


def __dir__() -> list[str]:
    return sorted(__all__)

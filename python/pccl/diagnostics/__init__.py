# SPDX-License-Identifier: Apache-2.0
"""Diagnosis of jobs: flight records, the status of running processes, and the level of the log."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pccl._core import set_log_level
    from pccl.diagnostics.flight import flight_record

__all__ = ["flight_record", "set_log_level"]

_MODULES = {"flight_record": "pccl.diagnostics.flight", "set_log_level": "pccl._core"}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

# SPDX-License-Identifier: Apache-2.0
"""Process group for torchft, whose ranks may change at every step.

torchft is loaded at the first use of the class; its package must be installed.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pccl.torchft.process_group import ProcessGroupPCCL

__all__ = ["ProcessGroupPCCL"]

_MODULES = {"ProcessGroupPCCL": "pccl.torchft.process_group"}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

# SPDX-License-Identifier: Apache-2.0
"""The backend for ``torch.distributed``, and its functions that torch does not have.

torch is loaded at the first use of one of the names.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pccl.torch.backend import health, monitored_barrier, shrink

__all__ = ["health", "monitored_barrier", "shrink"]

_MODULES = {
    "health": "pccl.torch.backend",
    "monitored_barrier": "pccl.torch.backend",
    "shrink": "pccl.torch.backend",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

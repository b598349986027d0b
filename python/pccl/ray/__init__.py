# SPDX-License-Identifier: Apache-2.0
"""Backend for ``ray.util.collective``; its collectives run on ``pccl.Communicator``.

Ray is loaded at the first use of one of the names; its package must be installed. Ray Train needs
no module: ``TorchConfig(backend="pccl")``.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pccl.ray.group import register

__all__ = ["register"]

_MODULES = {"register": "pccl.ray.group"}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

# SPDX-License-Identifier: Apache-2.0
"""Measurements between processes of this machine, for ``pccl bench`` and ``pccl tune``.

numpy is loaded at the first use of a function that needs it; most commands of ``pccl`` need none.
"""

import importlib
from typing import TYPE_CHECKING

from pccl.bench.sizes import bytes_of, sizes_between

if TYPE_CHECKING:
    from pccl.bench import tune
    from pccl.bench.collectives import Job, Row, measured, run

__all__ = ["Job", "Row", "bytes_of", "measured", "run", "sizes_between", "tune"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "tune":
        return importlib.import_module("pccl.bench.tune")
    return getattr(importlib.import_module("pccl.bench.collectives"), name)

# SPDX-License-Identifier: Apache-2.0
"""PCCL: a programmable collective communication library and ``torch.distributed`` backend.

The import of this package is cheap: torch and the extension modules are loaded at their first use,
and no part of the package needs a GPU. Other public names are in the modules ``bench``,
``capsule``, ``communicator``, ``diagnostics``, ``explanation``, ``gpu``, ``lang``, ``launch``,
``launchers``, ``p2p``, ``phase_costs``, ``phases``, ``published``, ``ray``, ``schedule``,
``simulator``, ``timeline``, ``topology``, ``torch`` and ``torchft``, which need no import of their
own.
"""

from __future__ import annotations

import importlib
import sys
import typing

from pccl import errors
from pccl._autoload import register
from pccl._version import __version__
from pccl.errors import (
    AbortedError,
    Error,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    PeerLostError,
    ResourceExhaustedError,
    TimeoutError,
    UnavailableError,
    UnsupportedError,
)
from pccl.former_names import find_former_modules, value_under_former_name

if typing.TYPE_CHECKING:
    from pccl import bench as bench
    from pccl import capsule as capsule
    from pccl import communicator as communicator
    from pccl import diagnostics as diagnostics
    from pccl import explanation as explanation
    from pccl import gpu as gpu
    from pccl import lang as lang
    from pccl import launch as launch
    from pccl import launchers as launchers
    from pccl import p2p as p2p
    from pccl import phase_costs as phase_costs
    from pccl import phases as phases
    from pccl import published as published
    from pccl import ray as ray
    from pccl import schedule as schedule
    from pccl import simulator as simulator
    from pccl import timeline as timeline
    from pccl import topology as topology
    from pccl import torch as torch
    from pccl import torchft as torchft
    from pccl._core import Communicator, Event, Operator
    from pccl._torch import Options
    from pccl.capsule import Capsule
    from pccl.explanation import explain
    from pccl.launch import run
    from pccl.phases import Cluster, phase, switch_phase
    from pccl.torch import health, shrink

__all__ = [
    "AbortedError",
    "Capsule",
    "Cluster",
    "Communicator",
    "Error",
    "Event",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "Operator",
    "Options",
    "PeerLostError",
    "ResourceExhaustedError",
    "TimeoutError",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "errors",
    "explain",
    "health",
    "phase",
    "register",
    "run",
    "shrink",
    "switch_phase",
]

# Public modules, which are loaded at the first use of their name.
_MODULES = {
    "bench",
    "capsule",
    "communicator",
    "diagnostics",
    "explanation",
    "gpu",
    "lang",
    "launch",
    "launchers",
    "p2p",
    "phase_costs",
    "phases",
    "published",
    "ray",
    "schedule",
    "simulator",
    "timeline",
    "topology",
    "torch",
    "torchft",
}
# Modules of the names that are loaded at their first use.
_LAZY = {
    "Capsule": "pccl.capsule.programs",
    "Cluster": "pccl.phases.cluster",
    "Communicator": "pccl._core",
    "Event": "pccl._core",
    "Operator": "pccl._core",
    "Options": "pccl._torch",
    "explain": "pccl.explanation.choices",
    "health": "pccl.torch.backend",
    "phase": "pccl.phases.switching",
    "run": "pccl.launch.job",
    "shrink": "pccl.torch.backend",
    "switch_phase": "pccl.phases.switching",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"pccl.{name}")
    if name not in _LAZY:
        return value_under_former_name(__name__, name)
    if _LAZY[name] == "pccl._torch":
        importlib.import_module("pccl.torch.compatibility").require_matching_torch()
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


find_former_modules()

# torch registers the backend itself if it runs entry points. This call registers the backend if
# entry points are disabled or the package is not installed.
if "torch.distributed" in sys.modules:
    register()

# SPDX-License-Identifier: Apache-2.0
"""PCCL: a programmable collective communication library and ``torch.distributed`` backend.

The import of this package is cheap: torch and the extension modules are loaded at their first use,
and no part of the package needs a GPU.
"""

from __future__ import annotations

import importlib
import sys
import typing

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

if typing.TYPE_CHECKING:
    from pccl import (
        bench,
        lang,
        p2p,
        phase_costs,
        published,
        schedule,
        simulator,
        timeline,
        topology,
    )
    from pccl._core import (
        Communicator,
        DeviceGroup,
        DevicePlan,
        Event,
        GpuMemory,
        GpuWorkspace,
        Memory,
        Operator,
        PremulSum,
        Workspace,
        device_plan,
        set_log_level,
    )
    from pccl._torch import Options
    from pccl.advice import Operation, advise
    from pccl.capsule import Capsule, capsules, load_capsule, unload_capsule
    from pccl.capsule_results import LoadedCapsule
    from pccl.cluster import Cluster
    from pccl.cluster_results import SwitchError
    from pccl.explanation import explain
    from pccl.flight import flight_record
    from pccl.gpu_explanation import Gpus
    from pccl.launch import RankError, run
    from pccl.peer_health import PeerHealth
    from pccl.phases import current_phase, phase, switch_phase
    from pccl.torch_backend import health, monitored_barrier, shrink

__all__ = [
    "AbortedError",
    "Capsule",
    "Cluster",
    "Communicator",
    "DeviceGroup",
    "DevicePlan",
    "Error",
    "Event",
    "GpuMemory",
    "GpuWorkspace",
    "Gpus",
    "InternalError",
    "InvalidArgumentError",
    "LoadedCapsule",
    "Memory",
    "MismatchError",
    "Operation",
    "Operator",
    "Options",
    "PeerHealth",
    "PeerLostError",
    "PremulSum",
    "RankError",
    "ResourceExhaustedError",
    "SwitchError",
    "TimeoutError",
    "UnavailableError",
    "UnsupportedError",
    "Workspace",
    "__version__",
    "advise",
    "bench",
    "capsules",
    "current_phase",
    "device_plan",
    "explain",
    "flight_record",
    "health",
    "lang",
    "load_capsule",
    "monitored_barrier",
    "p2p",
    "phase",
    "phase_costs",
    "published",
    "register",
    "run",
    "schedule",
    "set_log_level",
    "shrink",
    "simulator",
    "switch_phase",
    "timeline",
    "topology",
    "unload_capsule",
]

_MODULES = {
    "bench",
    "lang",
    "p2p",
    "phase_costs",
    "published",
    "schedule",
    "simulator",
    "timeline",
    "topology",
}
# Modules of the names that are loaded at their first use.
_LAZY = {
    "advise": "pccl.advice",
    "Cluster": "pccl.cluster",
    "Capsule": "pccl.capsule",
    "Communicator": "pccl._core",
    "DeviceGroup": "pccl._core",
    "DevicePlan": "pccl._core",
    "device_plan": "pccl._core",
    "Event": "pccl._core",
    "explain": "pccl.explanation",
    "set_log_level": "pccl._core",
    "Operation": "pccl.advice",
    "LoadedCapsule": "pccl.capsule_results",
    "Operator": "pccl._core",
    "PremulSum": "pccl._core",
    "GpuMemory": "pccl._core",
    "GpuWorkspace": "pccl._core",
    "Memory": "pccl._core",
    "Workspace": "pccl._core",
    "capsules": "pccl.capsule",
    "load_capsule": "pccl.capsule",
    "unload_capsule": "pccl.capsule",
    "Options": "pccl._torch",
    "flight_record": "pccl.flight",
    "Gpus": "pccl.gpu_explanation",
    "PeerHealth": "pccl.peer_health",
    "current_phase": "pccl.phases",
    "phase": "pccl.phases",
    "switch_phase": "pccl.phases",
    "RankError": "pccl.launch",
    "SwitchError": "pccl.cluster_results",
    "run": "pccl.launch",
    "health": "pccl.torch_backend",
    "monitored_barrier": "pccl.torch_backend",
    "shrink": "pccl.torch_backend",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"pccl.{name}")
    if name == "CollectiveTimeoutError":
        importlib.import_module("pccl.former_names").warn_of_former_name(
            "pccl.CollectiveTimeoutError", "pccl.TimeoutError"
        )
        return TimeoutError
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _LAZY[name] == "pccl._torch":
        importlib.import_module("pccl._compatibility").require_matching_torch()
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


# torch registers the backend itself if it runs entry points. This call registers the backend if
# entry points are disabled or the package is not installed.
if "torch.distributed" in sys.modules:
    register()

# SPDX-License-Identifier: Apache-2.0
"""Support for names of the last release, which emit a DeprecationWarning."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = [
    "FORMER_MODULES",
    "FORMER_VALUES",
    "argument_under_former_name",
    "find_former_modules",
    "method_under_former_name",
    "value_under_former_name",
    "warn_of_former_name",
]

# Modules of version 0.1 and their present names.
FORMER_MODULES = {
    "pccl.advice": "pccl.phase_costs.advice",
    "pccl.arguments": "pccl._internal.arguments",
    "pccl.callbacks": "pccl.communicator.callbacks",
    "pccl.capsule_plot": "pccl.bench.capsule_plot",
    "pccl.capsule_recording": "pccl.bench.capsule_recording",
    "pccl.capsule_results": "pccl.results.loaded_capsule",
    "pccl.capsule_simulation": "pccl.simulator.simulation",
    "pccl.capsule_timeline": "pccl.bench.capsule_timeline",
    "pccl.capsule_timeline_torch": "pccl.bench.capsule_timeline_torch",
    "pccl.chakra": "pccl.diagnostics.chakra",
    "pccl.cluster": "pccl.phases.cluster",
    "pccl.cluster_file": "pccl.phases.cluster_file",
    "pccl.cluster_plot": "pccl.phases.cluster_plot",
    "pccl.cluster_progress": "pccl.phases.progress",
    "pccl.cluster_results": "pccl.phases.results",
    "pccl.cluster_watch": "pccl.phases.watch",
    "pccl.copies": "pccl.launch.copies",
    "pccl.flight": "pccl.diagnostics.flight",
    "pccl.flight_files": "pccl.diagnostics.flight_files",
    "pccl.given_file": "pccl._internal.given_file",
    "pccl.gpu_explanation": "pccl.explanation.gpus",
    "pccl.job_status": "pccl.diagnostics.job_status",
    "pccl.local_ranks": "pccl._internal.local_ranks",
    "pccl.named": "pccl.results.named",
    "pccl.objects": "pccl.communicator.objects",
    "pccl.own_path": "pccl._internal.own_path",
    "pccl.peer_health": "pccl.results.peer_health",
    "pccl.process_doors": "pccl.diagnostics.process_addresses",
    "pccl.process_session": "pccl.launch.sessions",
    "pccl.program_files": "pccl.cli.program_files",
    "pccl.rank_output": "pccl.launch.output",
    "pccl.rank_processes": "pccl.launch.processes",
    "pccl.replay_plot": "pccl.simulator.replay_plot",
    "pccl.replay_results": "pccl.simulator.replay_results",
    "pccl.replay_steps": "pccl.simulator.replay_steps",
    "pccl.reproductions": "pccl.published.reproductions",
    "pccl.schedule_html": "pccl.schedule.html",
    "pccl.schedule_plot": "pccl.schedule.plot",
    "pccl.schedule_steps": "pccl.results.schedule_steps",
    "pccl.script_ranks": "pccl.launch.scripts",
    "pccl.sizes": "pccl._internal.sizes",
    "pccl.switched_operator": "pccl.phases.switched_operator",
    "pccl.switched_replay": "pccl.simulator.switched_replay",
    "pccl.table": "pccl.results.table",
    "pccl.time_limits": "pccl._internal.time_limits",
    "pccl.timeline_plot": "pccl.timeline.plot",
    "pccl.timeline_ranks": "pccl.timeline.ranks",
    "pccl.timeline_steps": "pccl.timeline.steps",
    "pccl.timeline_trace": "pccl.timeline.trace",
    "pccl.torch_backend": "pccl.torch.backend",
    "pccl.torch_errors": "pccl.torch.errors",
    "pccl.whole_file": "pccl._internal.whole_file",
}
# Names of version 0.1 in modules and their present names.
FORMER_VALUES = {
    "pccl.CollectiveTimeoutError": "pccl.TimeoutError",
    "pccl.DeviceGroup": "pccl.gpu.DeviceGroup",
    "pccl.DevicePlan": "pccl.gpu.DevicePlan",
    "pccl.GpuMemory": "pccl.gpu.GpuMemory",
    "pccl.GpuWorkspace": "pccl.gpu.GpuWorkspace",
    "pccl.Gpus": "pccl.explanation.Gpus",
    "pccl.LoadedCapsule": "pccl.capsule.LoadedCapsule",
    "pccl.Memory": "pccl.communicator.Memory",
    "pccl.Operation": "pccl.phase_costs.Operation",
    "pccl.PeerHealth": "pccl.results.peer_health.PeerHealth",
    "pccl.PremulSum": "pccl.communicator.PremulSum",
    "pccl.RankError": "pccl.launch.RankError",
    "pccl.SwitchError": "pccl.phases.SwitchError",
    "pccl.Workspace": "pccl.communicator.Workspace",
    "pccl.advise": "pccl.phase_costs.advise",
    "pccl.capsules": "pccl.capsule.capsules",
    "pccl.current_phase": "pccl.phases.current_phase",
    "pccl.device_plan": "pccl.gpu.device_plan",
    "pccl.flight_record": "pccl.diagnostics.flight_record",
    "pccl.load_capsule": "pccl.capsule.load_capsule",
    "pccl.monitored_barrier": "pccl.torch.monitored_barrier",
    "pccl.set_log_level": "pccl.diagnostics.set_log_level",
    "pccl.unload_capsule": "pccl.capsule.unload_capsule",
    "pccl.errors.CollectiveTimeoutError": "pccl.errors.TimeoutError",
}

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def warn_of_former_name(former: str, current: str, stacklevel: int = 2) -> None:
    """Warn the caller's caller that ``former`` is now called ``current``.

    Parameters
    ----------
    former, current
        The two names, in the form of user code.
    stacklevel
        Number of frames from this call to the caller to warn, as for ``warnings.warn()``.
    """
    text = f"{former} is now called {current}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def value_under_former_name(module: str, name: str) -> object:
    """Return what ``module.name`` was, with a warning for the user of the module's ``__getattr__``.

    Raises
    ------
    AttributeError
        The module did not have this name either.
    """
    former = f"{module}.{name}"
    current = FORMER_VALUES.get(former) or FORMER_MODULES.get(former)
    if current is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_of_former_name(former, current, stacklevel=3)
    if former in FORMER_MODULES:
        return importlib.import_module(current)
    home, _, attribute = current.rpartition(".")
    return getattr(importlib.import_module(home), attribute)


class _FormerModules:
    """Finder and loader of modules under their former names; it is the last one."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in FORMER_MODULES:
            return None
        warn_of_former_name(name, FORMER_MODULES[name])
        return ModuleSpec(name, _FormerModules)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let the import system make a module, which ``exec_module`` replaces."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(FORMER_MODULES[module.__name__])


def find_former_modules() -> None:
    """Let imports of former module names find the present modules, with a warning."""
    if _FormerModules not in sys.meta_path:
        sys.meta_path.append(_FormerModules)


def method_under_former_name(former: str, method: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return ``method`` under its former name, with a warning."""

    @functools.wraps(method)
    def call(self: object, *args: object, **named: object) -> _Result:
        owner = type(self).__name__
        warn_of_former_name(f"{owner}.{former}()", f"{owner}.{method.__name__}()")
        return method(self, *args, **named)

    call.__name__ = former
    call.__doc__ = f"Call ``{method.__name__}()``, which was called so before 0.2."
    return call


def argument_under_former_name(
    former: str, current: str
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Return a decorator that accepts the former name of the argument ``current``."""

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def call(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            if former in named and current not in named:
                name = function.__name__
                warn_of_former_name(f"{name}({former}=)", f"{name}({current}=)")
                named[current] = named.pop(former)
            return function(*args, **named)

        return call

    return decorate

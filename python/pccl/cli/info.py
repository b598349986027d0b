# SPDX-License-Identifier: Apache-2.0
"""``pccl info``."""

import importlib.metadata
import os
import platform
import subprocess
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from pccl import _build_info
from pccl._internal import own_path
from pccl._version import __version__
from pccl.cli import terminal

TRANSPORTS = ("shm", "verbs", "tcp")

EXAMPLES = terminal.examples("pccl info", "pccl info --json")

_PROBE_S = 30.0  # for a process that tries one transport


def info(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Print what a report of a fault needs.

    Versions, what this build holds, which transports and GPUs there are and why others
    are not, whether the machine is tuned, what its steps cost, and the settings in the environment.
    """
    found = facts()
    if as_json:
        terminal.print_json(found)
        return
    longest = max(map(len, found))
    for name, value in found.items():
        print(_wrapped(f"{name:<{longest}}  {value}", longest + 2))


def facts() -> dict[str, str]:
    """Return what a report of a fault needs, by name."""
    return {
        "pccl": __version__,
        "built against torch": _build_info.TORCH_VERSION or "none: for numpy alone",
        "installed torch": _installed("torch"),
        "numpy": _installed("numpy"),
        "python": platform.python_version(),
        "modules": ", ".join(_build_info.MODULES) or "none",
        "CUDA kernels": "yes" if _build_info.CUDA else "no",
        "compiler": f"{_build_info.COMPILER} ({_build_info.BUILD_TYPE})",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}",
        "helper threads": _helpers(),
        "lanes of sessions": _lanes(),
        **{f"transport {name}": _transport(name) for name in TRANSPORTS},
        **_rdma(),
        "GPUs": _gpus(),
        **_gpu_path(),
        "tuning": _tuning(),
        "launcher": _launcher(),
        "environment": _environment(),
        **_costs(),
    }


def _wrapped(line: str, indent: int) -> str:
    return textwrap.fill(
        line,
        width=terminal.width(),
        subsequent_indent=" " * indent,
        break_long_words=False,  # paths
        break_on_hyphens=False,
    )


def _installed(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _helpers() -> str:
    """Return how many threads may help a rank with long calls where ranks share the cores."""
    from pccl import _core

    cores = _core.usable_cores()
    shares = ", ".join(f"{max(cores // ranks - 1, 0)} with {ranks} ranks" for ranks in (2, 4, 8))
    return f"for each rank of this host at most {shares}, of {cores} usable cores"


def _lanes() -> str:
    """Return how many lanes sessions have for large transfers over TCP, and why there are none."""
    from pccl import _core
    from pccl.errors import Error

    def to(peer: str, *, is_on_host: bool) -> str:
        lanes, why = _core._lanes_to_an_equal(is_on_host)
        return f"{lanes} to {peer}" + (f" ({why})" if why else "")

    try:
        return (
            f"{to('another host of as many cores', is_on_host=False)}, "
            f"{to('one process of this host', is_on_host=True)}"
        )
    except Error as error:  # of settings
        return f"unknown: {error}"


def _transport(name: str) -> str:
    """Return whether a process with this transport alone can have a group; otherwise the reason."""
    try:
        done = subprocess.run(
            own_path.command_for("import pccl; pccl.Communicator(rendezvous='none')"),
            env={**os.environ, "PCCL_TRANSPORTS": name},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROBE_S,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {_PROBE_S:.0f} s"
    if done.returncode == 0:
        return "works"
    return (done.stderr.strip().splitlines() or ["no word"])[-1].partition(": ")[2]


def _rdma() -> dict[str, str]:
    """Return the library of RDMA, and each port with why it is used or not."""
    from pccl import _core
    from pccl.errors import Error

    try:
        report = _core.rdma_report()
    except Error as error:  # of settings
        return {"RDMA": f"not looked for: {error}"}
    found = [_rdma_core(report)] if report["library"] else []
    if report["failure"]:
        found.append(report["failure"])
    rows = {"RDMA": "; ".join(found)}
    if report["library"]:
        manager = report["rdma_cm"]
        rows["RDMA rdma_cm"] = manager["failure"] or _rdma_core(manager)
    for device in report["devices"]:
        if device["failure"]:
            rows[f"RDMA {device['name']}"] = f"not used: {device['failure']}"
        for port in device["ports"]:
            rows[f"RDMA {device['name']}:{port['number']}"] = _rdma_port(device, port)
        if any(port["used"] for port in device["ports"]):
            rows[f"RDMA {device['name']}, memory of GPUs"] = device["gpu_access"]
    return rows


def _rdma_core(library: dict[str, Any]) -> str:
    version = f", rdma-core {library['version']}" if library["version"] else ""
    return f"{library['library']}{version}"


def _rdma_port(device: dict[str, Any], port: dict[str, Any]) -> str:
    kind = "emulated, " if device["soft"] else ""
    speed = f"{port['gigabits']:g} Gb/s" if port["gigabits"] else "unknown speed"
    facts = f"{kind}{port['state']}, {port['link_layer']}, {speed}, MTU {port['mtu']}"
    if not port["used"]:
        why = f": {port['reason']}" if port["reason"] else ""
        return f"not used{why} ({facts})"
    gid = next(gid for gid in port["gids"] if gid["index"] == port["gid_index"])
    return f"usable: {facts}, GID {gid['index']} {gid['address']} ({port['reason']})"


def _gpus() -> str:
    from pccl import topology
    from pccl.errors import Error

    try:
        gpus = topology.detect().gpus
    except Error as error:  # of settings, which are what the reader looks for
        return f"not looked for: {error}"
    return ", ".join(gpu.name for gpu in gpus) or "none that the driver shows"


def _gpu_path() -> dict[str, str]:
    """Return where kernels of several GPUs meet; nothing without GPUs."""
    from pccl import _core

    where = _core.gpu_path()
    return {"GPUs meet": where} if where else {}


def _tuning() -> str:
    from pccl import _core

    if not (path := _core.tuning_path()):
        return "no file: set PCCL_TUNING_FILE, XDG_CACHE_HOME or HOME"
    return f"{path}, {'there' if Path(path).exists() else 'not made yet: pccl tune'}"


def _costs() -> dict[str, str]:
    """Print the costs behind predictions, and their sources."""
    from pccl import _core

    source, lines = _core.machine_costs()
    path = _core.costs_path()
    figures = dict(line.split(": ", 1) for line in lines)
    return {"costs": f"{source}; {path or 'not kept'}"} | {
        f"cost of {name}": figure for name, figure in figures.items()
    }


def _launcher() -> str:
    """Return what ``rendezvous="auto"`` finds, or why it finds nothing."""
    from pccl.errors import Error
    from pccl.launchers import detect

    try:
        found = detect()
        found.require_meeting()
    except Error as error:
        return str(error)
    return str(found)


def _environment() -> str:
    """Name the settings of PCCL; that of the secret's file is no secret."""
    own = sorted(name for name in os.environ if name.startswith("PCCL_"))
    return " ".join(f"{name}={os.environ[name]}" for name in own) or "no PCCL_ variable is set"

"""``pccl info``."""

import importlib.metadata
import platform
from typing import Annotated

import typer

from pccl import _build_info
from pccl._version import __version__
from pccl.commands import terminal

EXAMPLES = terminal.examples("pccl info", "pccl info --json")


def info(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Print versions, and what this build holds."""
    if as_json:
        terminal.print_json(facts())
        return
    longest = max(map(len, facts()))
    for name, value in facts().items():
        print(f"{name:<{longest}}  {value}")


def facts() -> dict[str, str]:
    """Return what a report of a fault needs, by name."""
    return {
        "pccl": __version__,
        "built against torch": _build_info.TORCH_VERSION,
        "installed torch": _installed("torch"),
        "numpy": _installed("numpy"),
        "python": platform.python_version(),
        "modules": ", ".join(_build_info.MODULES) or "none",
        "CUDA kernels": "yes" if _build_info.CUDA else "no",
        "compiler": f"{_build_info.COMPILER} ({_build_info.BUILD_TYPE})",
        "machine": platform.machine(),
    }


def _installed(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"

"""The command ``pccl``."""

import importlib.metadata
import platform

import typer
from rich.console import Console
from rich.table import Table

from pccl import _build_info
from pccl._version import __version__

app = typer.Typer(
    help="PCCL: programmable collective communication.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _commands() -> None:
    """PCCL: programmable collective communication."""


def _installed(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _facts() -> dict[str, str]:
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


@app.command()
def info() -> None:
    """Print versions and what this build holds."""
    table = Table(show_header=False, box=None)
    for name, value in _facts().items():
        table.add_row(name, value)
    Console().print(table)


def main() -> None:
    """Entry point of the ``pccl`` command."""
    app()


if __name__ == "__main__":
    main()

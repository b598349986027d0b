# SPDX-License-Identifier: Apache-2.0
"""``pccl nixl``."""

import importlib.metadata
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from pccl.cli import terminal

__all__ = ["EXAMPLES", "app", "install"]

EXAMPLES = terminal.examples(
    "pccl nixl install",
    "pccl nixl install --into /opt/nixl/plugins",
)
PLUGIN = "libplugin_PCCL.so"
PACKAGES = ("nixl-cu12", "nixl-cu13")

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="The plugin by which NIXL's agents use sessions.",
    epilog=EXAMPLES,
)


@app.callback()
def _nixl() -> None:
    """Hold the commands below ``nixl``; with one alone, typer would leave its name out."""


def plugin() -> Path:
    """Return the plugin of this build."""
    path = Path(__file__).parents[1] / PLUGIN
    if not path.exists():
        raise ValueError(
            "this build of pccl has no plugin for NIXL: build with PCCL_NIXL_INCLUDE "
            "(docs/guide/nixl.md)"
        )
    return path


def plugin_folders() -> list[Path]:
    """Return where installed packages of NIXL have their own plugins."""
    folders: set[Path] = set()
    for package in PACKAGES:
        try:
            files = importlib.metadata.distribution(package).files or []
        except importlib.metadata.PackageNotFoundError:
            continue
        folders |= {Path(str(f.locate())).parent for f in files if f.name.startswith("libplugin_")}
    if not folders:
        raise ValueError(
            f"none of {', '.join(PACKAGES)} is installed here: install one, or pass --into FOLDER"
        )
    return sorted(folders)


def copy_into(source: Path, folder: Path) -> None:
    """Copy as a whole: who opens the file sees the old one or the new one."""
    if not folder.is_dir():
        raise ValueError(f"no folder for the plugin: {folder}")
    unfinished = folder / f".{PLUGIN}.{os.getpid()}"
    shutil.copyfile(source, unfinished)
    unfinished.replace(folder / PLUGIN)


@app.command("install", epilog=EXAMPLES)
def install(
    into: Annotated[Path | None, typer.Option(help="Folder in which NIXL looks.")] = None,
) -> None:
    """Put the plugin where NIXL looks for plugins.

    Its agents then have a backend "PCCL".
    """
    source = plugin()
    for folder in [into] if into else plugin_folders():
        copy_into(source, folder)
        print(folder / PLUGIN)

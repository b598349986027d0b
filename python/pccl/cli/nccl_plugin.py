# SPDX-License-Identifier: Apache-2.0
"""``pccl nccl-plugin``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from pccl.cli import terminal

__all__ = ["EXAMPLES", "nccl_plugin"]

EXAMPLES = terminal.examples(
    "pccl nccl-plugin",
    "pccl nccl-plugin --path",
)
PLUGIN = "libnccl-net-pccl.so"


def plugin() -> Path:
    """Return the plugin of this build."""
    path = Path(__file__).parents[1] / PLUGIN
    if not path.exists():
        raise ValueError(f"this build of pccl has no {PLUGIN}: install pccl again")
    return path


def nccl_plugin(
    path: Annotated[bool, typer.Option("--path", help="Print the path alone.")] = False,
) -> None:
    """Print the variables that make NCCL use PCCL's sockets.

    NCCL's log (NCCL_DEBUG=INFO) then has a line "Using network PCCL".
    """
    found = plugin()
    if path:
        print(found)
        return
    print(f"export NCCL_NET_PLUGIN={shlex.quote(str(found))}")
    print("export NCCL_NET=PCCL")

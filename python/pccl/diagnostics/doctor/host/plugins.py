# SPDX-License-Identifier: Apache-2.0
"""Net plug-ins of NCCL's ABI: the one that PCCL uses, and the one by which NCCL uses PCCL."""

from __future__ import annotations

import dataclasses
import filecmp
import functools
import re
import typing
from pathlib import Path

from pccl import _core
from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["NCCL_PLUGIN", "Plugins", "check", "read"]

NCCL_PLUGIN = "libnccl-net-pccl.so"
# The names of what a library exports are near its begin.
_MOST_BYTES = 1 << 20
_TABLE = re.compile(rb"\0ncclNetPlugin_v(\d{1,3})(?=\0)")


@dataclasses.dataclass(frozen=True)
class Plugins:
    """The plug-ins that the environment names; texts are empty where it names none."""

    net: str = ""  # that of PCCL_NET_PLUGIN: its name and the version of its table
    net_failure: str = ""
    nccl: str = ""  # versions of NCCL_PLUGIN's tables: "v6 to v12"
    nccl_file: str = ""  # that NCCL_NET_PLUGIN names, if it is called NCCL_PLUGIN
    nccl_failure: str = ""


def read(root: Root) -> Plugins:
    """Read the plug-ins; that of ``PCCL_NET_PLUGIN`` starts with this call."""
    net, failure = _net_plugin() if root.environment.get("PCCL_NET_PLUGIN") else ("", "")
    named = root.environment.get("NCCL_NET_PLUGIN", "")
    file = named if Path(named).name == NCCL_PLUGIN and "/" in named else ""
    own = Path(_core.__file__).parent / NCCL_PLUGIN
    return Plugins(net, failure, _tables_of(own), file, _failure_of(root.path(file), own, file))


def check(plugins: Plugins) -> Iterator[Finding]:
    """Find plug-ins that cannot be used, or are of another installation."""
    if plugins.net_failure:
        yield error(
            "plugins.net",
            f"the net plug-in of PCCL_NET_PLUGIN cannot be used: {plugins.net_failure}",
            "install it on this host, or unset PCCL_NET_PLUGIN on all of them",
        )
    if plugins.nccl_failure:
        yield warning(
            "plugins.nccl",
            f"NCCL_NET_PLUGIN names {plugins.nccl_file}, which {plugins.nccl_failure}",
            "set it as `pccl nccl-plugin` prints",
            file=plugins.nccl_file,
        )


def _net_plugin() -> tuple[str, str]:
    """Return name and table of the plug-in, and why it cannot be used."""
    try:
        found = _core.net_plugin_report()
    except Error as failure:
        return "", " ".join(str(failure).split())
    table = found["symbol"].removeprefix("ncclNetPlugin_")
    return f"{found['name']} {table}".strip(), " ".join(found["failure"].split())


def _failure_of(file: Path, own: Path, name: str) -> str:
    if not name:
        return ""
    if not _tables_of(file):
        return "is no plug-in that can be read"
    is_own = own.exists() and (file.samefile(own) or filecmp.cmp(file, own, shallow=False))
    return "" if is_own else "is of another installation of pccl than this one"


@functools.cache
def _tables_of(file: Path) -> str:
    """Return "v6 to v12", by the names in the file, which is not loaded; empty without any."""
    try:
        with file.open("rb") as opened:
            found = {int(each) for each in _TABLE.findall(opened.read(_MOST_BYTES))}
    except OSError:
        return ""
    return f"v{min(found)} to v{max(found)}" if found else ""

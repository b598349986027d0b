# SPDX-License-Identifier: Apache-2.0
"""Versions of pccl and of the packages beside it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import platform
import re
import typing

from pccl import _build_info
from pccl._version import __version__
from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.host import plugins

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Versions", "check", "read"]

LEAST_KERNEL = (4, 14)


@dataclasses.dataclass(frozen=True)
class Versions:
    """Versions; empty for what is not installed."""

    pccl: str = ""
    built_for_torch: str = ""
    torch: str = ""
    numpy: str = ""
    python: str = ""
    kernel: str = ""
    net_plugin: str = ""  # that of PCCL_NET_PLUGIN, and its table: "IB v10"
    nccl_plugin: str = ""  # tables of libnccl-net-pccl.so: "v6 to v12"


def read(root: Root) -> Versions:
    """Read the versions of this process."""
    own_plugins = plugins.read(root)
    return Versions(
        pccl=__version__,
        built_for_torch=_build_info.TORCH_VERSION,
        torch=_installed("torch"),
        numpy=_installed("numpy"),
        python=platform.python_version(),
        kernel=platform.release(),
        net_plugin=own_plugins.net,
        nccl_plugin=own_plugins.nccl,
    )


def check(versions: Versions) -> Iterator[Finding]:
    """Find versions that do not fit each other."""
    built, torch = _release(versions.built_for_torch), _release(versions.torch)
    if built and torch and built != torch:
        yield error(
            "versions.torch",
            f"pccl {versions.pccl} was built for torch {versions.built_for_torch}, and torch"
            f" {versions.torch} is installed",
            f"install pccl's wheel for torch {'.'.join(map(str, torch))}, or torch"
            f" {'.'.join(map(str, built))}",
            built=versions.built_for_torch,
            installed=versions.torch,
        )
    kernel = _release(versions.kernel)
    if kernel and kernel < LEAST_KERNEL:
        yield warning(
            "versions.kernel",
            f"Linux {versions.kernel} has no membarrier for processes that share memory",
            f"boot Linux {'.'.join(map(str, LEAST_KERNEL))} or later",
        )


@functools.cache
def _installed(name: str) -> str:
    """Return the version of a package, without the time that parsing its metadata takes."""
    try:
        metadata = importlib.metadata.distribution(name).read_text("METADATA") or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
    found = re.search(r"^Version: *(\S+)", metadata, re.MULTILINE)
    return found[1] if found else ""


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()

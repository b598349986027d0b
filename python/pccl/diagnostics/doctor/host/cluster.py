# SPDX-License-Identifier: Apache-2.0
"""Switches of the cluster file: whether their management answers."""

from __future__ import annotations

import dataclasses
import re
import socket
import typing
from concurrent.futures import ThreadPoolExecutor

from pccl.diagnostics.doctor.finding import Finding, error

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["ClusterFile", "check", "read"]

LIMIT_S = 2.0
_NETCONF_PORT = 830
_ADDRESS = re.compile(r"netconf://(?:[^@/]*@)?(\[[^\]]+\]|[^:/\[]+)(?::(\d+))?")


@dataclasses.dataclass(frozen=True)
class ClusterFile:
    """The file of ``PCCL_CLUSTER``, and its switches that do not answer."""

    path: str = ""
    failure: str = ""
    unreachable: tuple[tuple[str, str], ...] = ()  # address, reason


def read(root: Root) -> ClusterFile:
    """Connect to each switch with an address."""
    path = root.environment.get("PCCL_CLUSTER", "")
    if not path:
        return ClusterFile()
    from pccl.errors import Error
    from pccl.phases.cluster_file import read_cluster_file

    try:
        content = read_cluster_file(root.path(path))
    except (Error, OSError, ImportError) as refusal:
        return ClusterFile(path, failure=getattr(refusal, "strerror", None) or str(refusal))
    ends = sorted(set(_switches(content)))
    with ThreadPoolExecutor(max(len(ends), 1)) as threads:
        failures = list(threads.map(_why_unreachable, ends))
    return ClusterFile(
        path,
        unreachable=tuple(
            (f"{host}:{port}", why) for (host, port), why in zip(ends, failures, strict=True) if why
        ),
    )


def check(file: ClusterFile) -> Iterator[Finding]:
    """Find switches without a connection."""
    if file.failure:
        yield error(
            "cluster.file",
            f"PCCL_CLUSTER={file.path} cannot be read: {file.failure}",
            "name a cluster file that this user can read, or unset PCCL_CLUSTER",
        )
    for address, why in file.unreachable:
        yield error(
            "cluster.switch",
            f"the switch at {address} of PCCL_CLUSTER={file.path} does not answer ({why})",
            f"correct its address, or let TCP to {address} pass the firewall of the management"
            " network",
            address=address,
        )


def _switches(content: typing.Any) -> Iterator[tuple[str, int]]:
    """Return host and port of each address in the file."""
    if isinstance(content, dict):
        for value in content.values():
            yield from _switches(value)
    elif isinstance(content, list):
        for value in content:
            yield from _switches(value)
    elif isinstance(content, str) and (found := _ADDRESS.match(content)):
        yield found[1].strip("[]"), int(found[2] or _NETCONF_PORT)


def _why_unreachable(end: tuple[str, int]) -> str:
    try:
        socket.create_connection(end, timeout=LIMIT_S).close()
    except (OSError, OverflowError) as refusal:
        return getattr(refusal, "strerror", None) or str(refusal)
    return ""

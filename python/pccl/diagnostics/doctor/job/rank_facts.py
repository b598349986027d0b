# SPDX-License-Identifier: Apache-2.0
"""Facts of one rank, which rank 0 compares with those of the others."""

from __future__ import annotations

import dataclasses
import hmac
import os
import platform
import socket
import time
import typing

from pccl.diagnostics.doctor.finding import Finding
from pccl.diagnostics.doctor.host import cores, examination, limits, versions

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.root import Root

__all__ = ["RankFacts", "read"]

# Variables that may differ between hosts or ranks; rank 0's value counts, or each has its own.
OWN_SETTINGS = frozenset(
    {
        *("PCCL_HOST_ID", "PCCL_LOG_LEVEL", "PCCL_SECRET_FILE", "PCCL_FLIGHT_DIR"),
        *("PCCL_TUNING_FILE", "PCCL_COSTS_FILE", "PCCL_TOPO_FILE", "PCCL_TOPO_DUMP_FILE"),
        *("PCCL_GRAPH_FILE", "PCCL_GRAPH_DUMP_FILE", "PCCL_STARTER_PID", "PCCL_SOCKET_IFNAME"),
        *("PCCL_MANAGEMENT_IFNAME", "PCCL_IB_HCA", "PCCL_IB_GID_INDEX"),
    }
)


@dataclasses.dataclass(frozen=True)
class RankFacts:
    """A rank, its host and its settings; all values are of JSON."""

    rank: int
    host: str  # equal on all ranks of a host
    host_name: str
    machine: str = ""  # equal on hosts that share a kernel
    user: int = 0
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    secret: str = ""  # a proof of the secret's content; empty without one
    cores: list[int] = dataclasses.field(default_factory=list)
    online: int = 0  # cores of the machine
    quota: float | None = None
    descriptors: int | None = None
    namespaces: dict[str, str] = dataclasses.field(default_factory=dict)
    findings: list[dict[str, typing.Any]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0  # that reading them took

    @staticmethod
    def of(value: typing.Any) -> RankFacts:
        """Return the facts that another rank has published.

        Raises
        ------
        TypeError
            They are of another version of the doctor.
        """
        return RankFacts(**value)

    def found(self) -> list[Finding]:
        """Return the findings of the rank itself."""
        return [Finding(**each) for each in self.findings]


def read(root: Root, rank: int) -> RankFacts:
    """Read the facts of this process."""
    begun = time.monotonic()
    own_cores = cores.read(root)
    own_versions = versions.read(root)
    network = root.link("/proc/self/ns/net") or ""
    machine = (root.text("/proc/sys/kernel/random/boot_id") or platform.node()).strip()
    return RankFacts(
        rank=rank,
        host=root.environment.get("PCCL_HOST_ID") or f"{machine} {network}",
        host_name=socket.gethostname(),
        machine=machine,
        user=os.geteuid(),
        versions=dataclasses.asdict(own_versions),
        settings={
            name: value
            for name, value in sorted(root.environment.items())
            if name.startswith("PCCL_") and name not in OWN_SETTINGS
        },
        secret=_proof(root),
        cores=sorted(own_cores.allowed),
        online=os.cpu_count() or 0,
        quota=own_cores.quota,
        descriptors=limits.read(root).descriptors,
        namespaces={
            kind: root.link(f"/proc/self/ns/{kind}") or "" for kind in ("user", "pid", "net")
        },
        findings=[dataclasses.asdict(each) for each in examination.of_rank(root)],
        seconds=time.monotonic() - begun,
    )


def _proof(root: Root) -> str:
    """Return a value that depends on the secret, and from which nobody can compute it."""
    name = root.environment.get("PCCL_SECRET_FILE")
    try:
        secret = root.path(name).read_bytes() if name else b""
    except OSError:
        return ""
    return hmac.digest(secret, b"pccl doctor", "sha256").hex()[:16] if secret else ""

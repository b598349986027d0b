# SPDX-License-Identifier: Apache-2.0
"""Resource limits of the process: descriptors, locked memory, file sizes, processes."""

from __future__ import annotations

import dataclasses
import re
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Limits", "check", "descriptors_of", "read"]

LEAST_DESCRIPTORS = 256
DESCRIPTORS = 1024
LEAST_LOCKED = 64 << 20
LEAST_FILE = 64 << 20
_NAMES = {
    "descriptors": "Max open files",
    "locked": "Max locked memory",
    "file": "Max file size",
    "processes": "Max processes",
}


@dataclasses.dataclass(frozen=True)
class Limits:
    """Soft limits; None without a limit."""

    descriptors: int | None = None
    hard_descriptors: int | None = None
    locked: int | None = None
    file: int | None = None
    has_rdma: bool = False
    pids: tuple[int, int] | None = None  # of the cgroup: the number now, and the maximum


def read(root: Root) -> Limits:
    """Read the limits of this process."""
    text = root.text("/proc/self/limits") or ""
    return Limits(
        descriptors=_limit(text, "descriptors"),
        hard_descriptors=_limit(text, "descriptors", hard=True),
        locked=_limit(text, "locked"),
        file=_limit(text, "file"),
        has_rdma=bool(root.names("/sys/class/infiniband")),
        pids=_pids(root),
    )


def descriptors_of(ranks: int) -> int:
    """Return the descriptors that a rank of a job of this size may need."""
    return DESCRIPTORS + 16 * ranks


def check(limits: Limits) -> Iterator[Finding]:
    """Find limits that are too low."""
    if limits.descriptors is not None and limits.descriptors < DESCRIPTORS:
        make = error if limits.descriptors < LEAST_DESCRIPTORS else warning
        yield make(
            "limits.descriptors",
            f"a process may have {limits.descriptors} descriptors, fewer than {DESCRIPTORS}",
            _raise_descriptors(limits.hard_descriptors),
            descriptors=limits.descriptors,
        )
    if limits.has_rdma and limits.locked is not None and limits.locked < LEAST_LOCKED:
        yield error(
            "limits.memlock",
            f"a process may lock {limits.locked >> 10} KiB, too few for RDMA",
            "run `ulimit -l unlimited`, or set memlock in /etc/security/limits.conf"
            " (LimitMEMLOCK=infinity of a systemd unit, --ulimit memlock=-1 of docker)",
            bytes=limits.locked,
        )
    if limits.file is not None and limits.file < LEAST_FILE:
        yield error(
            "limits.file_size",
            f"files may have {limits.file} bytes at most, so ranks share no memory",
            "run `ulimit -f unlimited`",
            bytes=limits.file,
        )
    if limits.pids is not None and limits.pids[0] > 0.9 * limits.pids[1]:
        yield error(
            "limits.pids",
            f"the cgroup has {limits.pids[0]} of {limits.pids[1]} permitted threads",
            "raise pids.max of the cgroup (--pids-limit of docker, podPidsLimit of the kubelet)",
            pids=limits.pids[0],
            most=limits.pids[1],
        )


def _raise_descriptors(hard: int | None) -> str:
    wanted = 65536
    if hard is None or hard >= DESCRIPTORS:
        return f"run `ulimit -n {wanted if hard is None else min(hard, wanted)}`"
    return f"set nofile to {wanted} in /etc/security/limits.conf, or --ulimit nofile={wanted}"


def _limit(text: str, name: str, *, hard: bool = False) -> int | None:
    found = re.search(rf"^{_NAMES[name]}\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    value = found[2 if hard else 1] if found else "unlimited"
    return int(value) if value.isdigit() else None


def _pids(root: Root) -> tuple[int, int] | None:
    from pccl.diagnostics.doctor.host.cgroup import folders

    for folder in folders(root, "pids"):
        now, most = root.number(f"{folder}/pids.current"), root.number(f"{folder}/pids.max")
        if now is not None and most:
            return now, most
    return None

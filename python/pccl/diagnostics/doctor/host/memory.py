# SPDX-License-Identifier: Apache-2.0
"""Memory of the host: ``/dev/shm``, huge pages, and what the cgroup leaves."""

from __future__ import annotations

import dataclasses
import re
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.host import cgroup

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Memory", "check", "read"]

LEAST_SHM = 256 << 20
LEAST_LEFT = 256 << 20
MOST_RESERVED = 0.5


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes; None where there is no such limit or no such place."""

    shm: tuple[int, int] | None = None  # total, free
    total: int = 0
    available: int = 0
    huge_reserved: int = 0
    huge_free: int = 0
    left: tuple[int, int] | None = None  # of the cgroup: bytes left, limit


def read(root: Root) -> Memory:
    """Read the sizes and what is left of them."""
    fields = dict(
        re.findall(r"^(\w+):\s+(\d+)", root.text("/proc/meminfo") or "", re.MULTILINE),
    )
    page = int(fields.get("Hugepagesize", 0)) << 10
    return Memory(
        shm=root.space("/dev/shm") if root.path("/dev/shm").is_dir() else None,
        total=int(fields.get("MemTotal", 0)) << 10,
        available=int(fields.get("MemAvailable", 0)) << 10,
        huge_reserved=page * int(fields.get("HugePages_Total", 0)),
        huge_free=page * int(fields.get("HugePages_Free", 0)),
        left=cgroup.memory_left(root),
    )


def check(memory: Memory) -> Iterator[Finding]:
    """Find memory that is too small, or reserved and unused."""
    yield from _check_shm(memory)
    if memory.left is not None and memory.left[0] < LEAST_LEFT:
        yield error(
            "memory.cgroup",
            f"the cgroup leaves {memory.left[0] >> 20} MiB of its {memory.left[1] >> 20} MiB",
            "raise memory.max (--memory of docker, limits.memory of a pod)",
            left=memory.left[0],
            limit=memory.left[1],
        )
    if memory.total and memory.huge_free > MOST_RESERVED * memory.total:
        yield warning(
            "memory.huge_pages",
            f"{memory.huge_free >> 20} of {memory.total >> 20} MiB are reserved as huge pages, and"
            " unused",
            "lower vm.nr_hugepages: PCCL uses ordinary pages",
            free=memory.huge_free,
            total=memory.total,
        )


def _check_shm(memory: Memory) -> Iterator[Finding]:
    advice = "mount a tmpfs of several GiB there (--shm-size=8g of docker, an emptyDir of medium"
    if memory.shm is None:
        yield warning(
            "memory.shm",
            "there is no /dev/shm, which DataLoader workers of torch need",
            f"{advice} Memory in a pod)",
        )
    elif memory.shm[0] < LEAST_SHM or memory.shm[1] < LEAST_SHM / 4:
        yield warning(
            "memory.shm",
            f"/dev/shm has {memory.shm[0] >> 20} MiB, {memory.shm[1] >> 20} MiB of them free: too"
            " few for DataLoader workers of torch",
            f"{advice} Memory in a pod), or delete old files there",
            total=memory.shm[0],
            free=memory.shm[1],
        )

# SPDX-License-Identifier: Apache-2.0
"""Control groups of the process, of version 1 and 2."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["cpu_quota", "folders", "memory_left", "throttled_share"]

_UNLIMITED = 1 << 60


def folders(root: Root, controller: str) -> Iterator[str]:
    """Return the folders of the groups of this process, the innermost first."""
    mounts = _mounts(root)
    for line in (root.text("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        key = "" if number == "0" and not names else controller
        if (key and controller not in names.split(",")) or key not in mounts:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):
            yield "/".join([mounts[key], *parts[:depth]])


def cpu_quota(root: Root) -> float | None:
    """Return the processors whose time the groups allow; None without a quota."""
    quotas = []
    for folder in folders(root, "cpu"):
        words = (root.text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            quotas.append(int(words[0]) / max(int(words[1]), 1))
        quota = root.number(f"{folder}/cpu.cfs_quota_us")
        period = root.number(f"{folder}/cpu.cfs_period_us")
        if quota and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def throttled_share(root: Root) -> float | None:
    """Return the share of periods in which the group was throttled; None if it was never."""
    for folder in folders(root, "cpu"):
        fields = dict(
            line.split(maxsplit=1) for line in (root.text(f"{folder}/cpu.stat") or "").splitlines()
        )
        periods, throttled = fields.get("nr_periods", "0"), fields.get("nr_throttled", "0")
        if periods.isdigit() and throttled.isdigit() and int(periods) >= 50:
            return int(throttled) / int(periods)
    return None


def memory_left(root: Root) -> tuple[int, int] | None:
    """Return the bytes that the groups still allow, and their limit; None without a limit."""
    left = []
    for folder in folders(root, "memory"):
        for limit_name, usage_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, usage = (
                root.number(f"{folder}/{limit_name}"),
                root.number(f"{folder}/{usage_name}"),
            )
            if limit is not None and usage is not None and limit < _UNLIMITED:
                left.append((limit - usage + _reclaimable(root, folder), limit))
    return min(left, default=None)


def _reclaimable(root: Root, folder: str) -> int:
    """Return the bytes of cached files, which the kernel gives back when memory is short."""
    for line in (root.text(f"{folder}/memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.isdigit():
            return int(value)
    return 0


def _mounts(root: Root) -> dict[str, str]:
    """Return the mount points of hierarchies by controller; that of version 2 by ``""``."""
    found: dict[str, str] = {}
    for line in (root.text("/proc/mounts") or "").splitlines():
        words = line.split()
        if len(words) < 4:
            continue
        if words[2] == "cgroup2":
            found.setdefault("", words[1])
        elif words[2] == "cgroup":
            for option in words[3].split(","):
                found.setdefault(option, words[1])
    return found

# SPDX-License-Identifier: Apache-2.0
"""CPU control groups of a benchmark, of version 1 or 2, below the group of the benchmark."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PERIOD_US = 100_000
_REMOVE_S = 5.0


class NoGroupsError(RuntimeError):
    """A control group could not be made; the message is the reason."""


@dataclass(frozen=True)
class Group:
    """A control group of this host."""

    folder: Path

    def command(self, command: list[str]) -> list[str]:
        """Return the command of a process that begins in this group."""
        enter = f'echo $$ > "{self.folder}/cgroup.procs" && exec "$@"'
        return ["sh", "-c", enter, "enter", *command]

    def limit(self, cores: float) -> None:
        """Set the quota of the group; infinity removes it."""
        quota = None if cores == float("inf") else round(cores * PERIOD_US)
        if (self.folder / "cpu.max").exists():
            (self.folder / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}\n")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(f"{PERIOD_US}\n")
            (self.folder / "cpu.cfs_quota_us").write_text(f"{quota or -1}\n")

    def throttled(self) -> int:
        """Return the number of periods in which the quota stopped the group."""
        lines = (self.folder / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines).get("nr_throttled", 0))


@contextlib.contextmanager
def make_group(name: str) -> Iterator[Group]:
    """Make a group that has the controller of CPU time, and remove it afterwards.

    Raises
    ------
    NoGroupsError
        No hierarchy has that controller, or this process may not make groups there.
    """
    folder = _own_folder() / f"pccl-{name}-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise NoGroupsError(f"cannot make {folder}: {error.strerror}; run it as root") from None
    try:
        if not any((folder / limit).exists() for limit in ("cpu.max", "cpu.cfs_quota_us")):
            raise NoGroupsError(f"{folder.parent} does not hand the cpu controller to its groups")
        yield Group(folder)
    finally:
        _remove(folder)


def is_in_root_group() -> bool:
    """Tell whether this process is in no group with CPU time of its own: autogroups count there."""
    return _own_folder() in _mounts().values()


def _own_folder() -> Path:
    """Return the folder of this process's group in the hierarchy of the cpu controller."""
    mounts = _mounts()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") and "cpu" in mounts:
            return mounts["cpu"] / path.lstrip("/")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers and "" in mounts:
            return _with_controller(mounts[""] / path.lstrip("/"))
    raise NoGroupsError("no hierarchy of control groups with the cpu controller is mounted")


def _with_controller(folder: Path) -> Path:
    """Return the group, or the nearest above it, whose children have the controller."""
    for parent in (folder, *folder.parents):
        children = parent / "cgroup.subtree_control"
        if not children.exists():
            break
        if "cpu" in children.read_text().split():
            return parent
    with contextlib.suppress(OSError):
        (folder / "cgroup.subtree_control").write_text("+cpu")
    return folder


def _mounts() -> dict[str, Path]:
    """Return the mount points by controller; that of version 2 by an empty name."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options = line.split()[:4]
        names = {"cgroup": options.split(","), "cgroup2": [""]}.get(kind, [])
        for name in names:
            found.setdefault(name, Path(where))
    return found


def _remove(folder: Path) -> None:
    """Remove a group, whose last processes may be ending."""
    deadline = time.monotonic() + _REMOVE_S
    while True:
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return

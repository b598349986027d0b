# SPDX-License-Identifier: Apache-2.0
"""Addresses at which processes of this host answer status queries, from /proc."""

from __future__ import annotations

import os
import socket
import struct
import typing
from pathlib import Path

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["connections_of_this_process", "doors_of", "family_of"]

_PROC = Path("/proc")
_NAMES = "@pccl-"
_LISTENS = "0A"  # TCP_LISTEN
_CONNECTED = "01"  # TCP_ESTABLISHED
_ACCEPTS = 0x10000  # __SO_ACCEPTCON


def family_of(pid: int) -> list[int]:
    """Return a process and all of its descendants, parents first.

    Raises
    ------
    ValueError
        There is no such process.
    """
    if not (_PROC / str(pid)).exists():
        raise ValueError(f"there is no process {pid} on this host")
    children: dict[int, list[int]] = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        parent = _parent(stat)
        if parent is not None:
            children.setdefault(parent, []).append(int(stat.parent.name))
    family = [pid]
    for member in family:
        family.extend(sorted(children.get(member, [])))
    return family


def doors_of(pid: int) -> list[str]:
    """Return the addresses of a process: its unix socket, or else all of its TCP addresses.

    Raises
    ------
    PermissionError
        This user may not inspect the process, for example because it belongs to another user.
    """
    sockets = _sockets_of(pid)
    within_host = [name for inode, name in _unix_doors(pid) if inode in sockets]
    return within_host or [name for inode, name in _tcp_doors(pid) if inode in sockets]


def connections_of_this_process() -> list[tuple[str, str]]:
    """Return the local and the remote IP address of each TCP connection."""
    sockets = _sockets_of(os.getpid())
    return [
        (_ip(fields[1]), _ip(fields[2]))
        for table in ("tcp", "tcp6")
        for fields in _lines("thread-self", table)
        if fields[3] == _CONNECTED and fields[9] in sockets
    ]


def _parent(stat: Path) -> int | None:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):  # the process has ended
        return None


def _sockets_of(pid: int) -> set[str]:
    inodes = set()
    for fd in (_PROC / str(pid) / "fd").iterdir():
        try:
            target = str(fd.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    return inodes


def _lines(pid: int | str, table: str) -> Iterator[list[str]]:
    try:
        text = (_PROC / str(pid) / "net" / table).read_text()
    except FileNotFoundError:  # a kernel without IPv6
        return
    for line in text.splitlines()[1:]:
        yield line.split()


def _unix_doors(pid: int) -> Iterator[tuple[str, str]]:
    for _, _, _, flags, _, _, inode, *path in _lines(pid, "unix"):
        if path and path[0].startswith(_NAMES) and int(flags, 16) & _ACCEPTS:
            yield inode, f"unix:{path[0]}"


def _tcp_doors(pid: int) -> Iterator[tuple[str, str]]:
    for table in ("tcp", "tcp6"):
        for fields in _lines(pid, table):
            if fields[3] == _LISTENS:
                yield fields[9], _address(*fields[1].split(":"))


def _ip(address: str) -> str:
    """Return the IP address of an entry, in the form of IPv4 if it is mapped into IPv6."""
    host = _address(*address.split(":")).rpartition(":")[0].strip("[]")
    return host.removeprefix("::ffff:") if "." in host else host


def _address(ip: str, port: str) -> str:
    words = [int(ip[at : at + 8], 16) for at in range(0, len(ip), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)  # in the byte order of the kernel
    if len(packed) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, packed)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]:{int(port, 16)}"

# SPDX-License-Identifier: Apache-2.0
"""Permissions of the process: ptrace scope, filters of system calls, user namespace, /proc/sys."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Privileges", "check", "read"]

_CAP_SYS_PTRACE = 19
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_FILTERED = (errno.EPERM, errno.EACCES, errno.ENOSYS)
_LOST = {
    "process_vm_readv": "ranks copy large messages twice",
    "membarrier": "ranks wake each other slower",
    "memfd_create": "ranks of this host share no memory",
}


@dataclasses.dataclass(frozen=True)
class Privileges:
    """Permissions."""

    ptrace_scope: int = 0
    may_ptrace: bool = False
    seccomp: int = 0
    refused: tuple[str, ...] = ()  # system calls that a filter refuses
    uid: int = 0
    is_mapped: bool = True  # in the user namespace
    has_boot_id: bool = True
    has_host_id: bool = False


def read(root: Root) -> Privileges:
    """Read the permissions, and try the system calls that containers refuse."""
    capabilities = int(root.status("CapEff") or "0", 16)
    uid = int((root.status("Uid") or "0").split()[0])
    return Privileges(
        ptrace_scope=root.number("/proc/sys/kernel/yama/ptrace_scope") or 0,
        may_ptrace=bool(capabilities >> _CAP_SYS_PTRACE & 1),
        seccomp=int(root.status("Seccomp") or "0"),
        refused=tuple(_refused_calls()),
        uid=uid,
        is_mapped=uid != (root.number("/proc/sys/kernel/overflowuid") or 65534),
        has_boot_id=root.text(_BOOT_ID) is not None,
        has_host_id=bool(root.environment.get("PCCL_HOST_ID")),
    )


def check(privileges: Privileges) -> Iterator[Finding]:
    """Find permissions that PCCL misses."""
    if privileges.ptrace_scope and not privileges.may_ptrace:
        yield warning(
            "privileges.ptrace",
            f"kernel.yama.ptrace_scope is {privileges.ptrace_scope}, so that ranks copy large"
            " messages twice instead of reading each other's memory",
            "run `sysctl kernel.yama.ptrace_scope=0`, or add the capability SYS_PTRACE",
            scope=privileges.ptrace_scope,
        )
    for call in privileges.refused:
        make = error if call == "memfd_create" else warning
        yield make(
            "privileges.seccomp",
            f"a filter of system calls (seccomp mode {privileges.seccomp}) refuses {call}, so that"
            f" {_LOST[call]}",
            f"allow {call} in the profile (--security-opt seccomp=FILE of docker,"
            " seccompProfile of a pod)",
            call=call,
        )
    if not privileges.is_mapped:
        yield warning(
            "privileges.user_namespace",
            f"the user namespace maps this process to no user (uid {privileges.uid}), so that it"
            " owns neither its files nor its secret",
            "add the user to uid_map (--userns=keep-id of podman, hostUsers of a pod)",
            uid=privileges.uid,
        )
    if not privileges.has_boot_id and not privileges.has_host_id:
        yield error(
            "privileges.proc_sys",
            f"{_BOOT_ID} cannot be read, by which PCCL identifies the host",
            "mount /proc with its sys folder, or set PCCL_HOST_ID to a name of this host",
        )


def _refused_calls() -> Iterator[str]:
    """Try system calls that read, and return those that a filter refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name, attempt in (
        ("process_vm_readv", _read_own_memory),
        ("membarrier", _query_barriers),
        ("memfd_create", _make_memory_file),
    ):
        if attempt(libc) < 0 and ctypes.get_errno() in _FILTERED:
            yield name


class _Part(ctypes.Structure):  # struct iovec
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read_own_memory(libc: ctypes.CDLL) -> int:
    import os

    source, target = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    parts = [_Part(ctypes.addressof(buffer), 1) for buffer in (target, source)]
    read_memory = libc.process_vm_readv
    read_memory.restype = ctypes.c_ssize_t
    zero = ctypes.c_ulong(0)
    one = ctypes.c_ulong(1)
    return int(
        read_memory(os.getpid(), ctypes.byref(parts[0]), one, ctypes.byref(parts[1]), one, zero)
    )


def _query_barriers(libc: ctypes.CDLL) -> int:
    import platform

    number = {"x86_64": 324, "aarch64": 283}.get(platform.machine())
    return 0 if number is None else int(libc.syscall(ctypes.c_long(number), 0, 0, 0))


def _make_memory_file(_: ctypes.CDLL) -> int:
    import os

    try:
        os.close(os.memfd_create("pccl-doctor"))
    except OSError as refusal:
        ctypes.set_errno(refusal.errno or 0)
        return -1
    return 0

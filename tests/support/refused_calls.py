# SPDX-License-Identifier: Apache-2.0
"""Filters of system calls (seccomp) like those of containers."""

from __future__ import annotations

import ctypes
import os
import struct

NUMBERS = {
    "memfd_create": {"x86_64": 319, "aarch64": 279},
    "process_vm_readv": {"x86_64": 310, "aarch64": 270},
    "membarrier": {"x86_64": 324, "aarch64": 283},
}


def refuse(call: str) -> None:
    """Let the kernel refuse a system call of this process, and of those that it starts."""
    # linux/filter.h, seccomp.h: load the number of the call; return EPERM for one, allow others.
    number = NUMBERS[call][os.uname().machine]
    program = b"".join(
        struct.pack("HBBI", *line)
        for line in [
            (0x20, 0, 0, 0),
            (0x15, 0, 1, number),
            (0x06, 0, 0, 0x00050000 | 1),
            (0x06, 0, 0, 0x7FFF0000),
        ]
    )
    text = ctypes.create_string_buffer(program)
    # struct sock_fprog
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, filters) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, by a filter

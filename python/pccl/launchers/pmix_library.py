# SPDX-License-Identifier: Apache-2.0
"""The library libpmix, opened at run time, and the values of its interface.

The layout of these values is the same in PMIx 3 to 6 (pmix_common.h, pmix_structs.h).
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
from pathlib import Path

__all__ = ["Info", "Process", "Value", "library", "places"]

NAME = "libpmix.so.2"
_RTLD_NOLOAD = 4
_PLUGIN_FOLDERS = ("pmix2/lib", "")  # Debian has it beside, and in the path of the linker


class Process(ctypes.Structure):
    """``pmix_proc_t``: a process of a namespace."""

    _fields_ = (("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32))


class _Bytes(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Data(ctypes.Union):
    _fields_ = (
        ("flag", ctypes.c_bool),
        ("integer", ctypes.c_int),
        ("uint32", ctypes.c_uint32),
        ("string", ctypes.c_char_p),
        ("bytes", _Bytes),
        ("whole", ctypes.c_uint64 * 3),
    )


class Value(ctypes.Structure):
    """``pmix_value_t``: the type of a value, and the value."""

    _fields_ = (("type", ctypes.c_uint16), ("data", _Data))


class Info(ctypes.Structure):
    """``pmix_info_t``: an attribute of a request."""

    _fields_ = (("key", ctypes.c_char * 512), ("flags", ctypes.c_uint32), ("value", Value))


def places() -> list[str]:
    """Return where the library is looked for, the launcher's own folder first."""
    prefixes = [os.environ.get("PMIX_PREFIX"), os.environ.get("OPAL_PREFIX")]
    launcher = shutil.which("prterun") or shutil.which("pmix_info")
    if launcher:
        prefixes.append(str(Path(launcher).resolve().parent.parent))
    own = [str(Path(prefix, "lib", NAME)) for prefix in prefixes if prefix]
    machine = f"/usr/lib/{os.uname().machine}-linux-gnu"
    debian = [str(Path(machine, folder, NAME)) for folder in _PLUGIN_FOLDERS]
    return [*own, NAME, *debian]


@functools.cache
def library() -> ctypes.CDLL | None:
    """Open the library that this process has loaded already, or else the first one found."""
    for mode, place in [(_RTLD_NOLOAD, NAME), *((0, place) for place in places())]:
        try:
            found = ctypes.CDLL(place, mode=mode | os.RTLD_NOW | os.RTLD_LOCAL)
            _declare(found)
        except (OSError, AttributeError):
            continue
        return found
    return None


def _declare(pmix: ctypes.CDLL) -> None:
    process, infos, count = ctypes.POINTER(Process), ctypes.POINTER(Info), ctypes.c_size_t
    value = ctypes.POINTER(Value)
    pmix.PMIx_Init.argtypes = [process, infos, count]
    pmix.PMIx_Put.argtypes = [ctypes.c_uint8, ctypes.c_char_p, value]
    pmix.PMIx_Commit.argtypes = []
    pmix.PMIx_Fence.argtypes = [process, count, infos, count]
    pmix.PMIx_Get.argtypes = [process, ctypes.c_char_p, infos, count, ctypes.POINTER(value)]
    pmix.PMIx_Finalize.argtypes = [infos, count]
    pmix.PMIx_Error_string.argtypes = [ctypes.c_int]
    pmix.PMIx_Error_string.restype = ctypes.c_char_p

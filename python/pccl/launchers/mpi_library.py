# SPDX-License-Identifier: Apache-2.0
"""The MPI library of this process, which may share the connection to the launcher."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

__all__ = ["has_been_initialized"]

_LIBRARY = re.compile(r"/libmp(i|ich|i_[a-z_]+)(-[0-9a-f]+)?\.so[.0-9]*$")
_RTLD_NOLOAD = 4


def has_been_initialized() -> bool:
    """Return whether a loaded MPI library has called MPI_Init, also if it has ended since then."""
    return any(_is_initialized(path) for path in _loaded())


def _loaded() -> set[str]:
    """Return the paths of MPI libraries that this process has mapped."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    paths = {line.split(maxsplit=5)[-1] for line in lines if "/libmp" in line}
    return {path for path in paths if _LIBRARY.search(path)}


def _is_initialized(path: str) -> bool:
    flag = ctypes.c_int(0)
    try:
        ctypes.CDLL(path, mode=_RTLD_NOLOAD | os.RTLD_NOW).MPI_Initialized(ctypes.byref(flag))
    except (OSError, AttributeError):
        return False
    return flag.value != 0

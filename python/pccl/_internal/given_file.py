# SPDX-License-Identifier: Apache-2.0
"""Bounded reading of untrusted files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from pccl.errors import InvalidArgumentError, UnavailableError

__all__ = ["bytes_of", "opened", "text_of"]


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Parameters
    ----------
    path
        Path of the file. Pipes and devices, which may be endless, are rejected without waiting.

    Raises
    ------
    UnavailableError
        The path is not a regular file.
    OSError
        The file cannot be opened.
    """
    # Without O_NONBLOCK, the open of a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnavailableError(f"{Path(path)}: this is no file")
    return os.fdopen(descriptor, "rb")


def bytes_of(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a file of at most ``most`` bytes.

    Parameters
    ----------
    path
        As for ``opened``.
    most
        Maximum number of bytes.

    Raises
    ------
    InvalidArgumentError
        The file has more bytes.
    UnavailableError
        The path is not a regular file.
    OSError
        The file cannot be opened.
    """
    with opened(path) as file:
        content = file.read(most + 1)  # files in /proc report a size of 0
    if len(content) > most:
        raise InvalidArgumentError(f"{Path(path)} has more than {most} bytes")
    return content


def text_of(path: str | os.PathLike[str], most: int) -> str:
    """Return the content of a file as text, with the rules of ``bytes_of``.

    Parameters
    ----------
    path, most
        As for ``bytes_of``. Bytes that are not UTF-8 are replaced.
    """
    return bytes_of(path, most).decode("utf-8", errors="replace")

# SPDX-License-Identifier: Apache-2.0
"""Files that anybody may have given: the one way to read them, within bounds."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from pccl.errors import InvalidArgumentError, UnavailableError

__all__ = ["bytes_of", "opened", "text_of"]


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Return a regular file, opened to be read.

    Parameters
    ----------
    path
        The file's. A pipe or a device could go on for ever, and is not waited for.

    Raises
    ------
    UnavailableError
        It is no regular file.
    OSError
        It cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe waits for whoever writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnavailableError(f"{Path(path)}: this is no file")
    return os.fdopen(descriptor, "rb")


def bytes_of(path: str | os.PathLike[str], most: int) -> bytes:
    """Return what is in a file, of which no more than ``most`` bytes are read.

    Parameters
    ----------
    path
        As for ``opened``.
    most
        Bytes that it may have.

    Raises
    ------
    InvalidArgumentError
        It has more.
    UnavailableError
        It is no regular file.
    OSError
        It cannot be opened.
    """
    with opened(path) as file:
        content = file.read(most + 1)  # /proc says of all its files that they are empty
    if len(content) > most:
        raise InvalidArgumentError(f"{Path(path)} has more than {most} bytes")
    return content


def text_of(path: str | os.PathLike[str], most: int) -> str:
    """Return the text of a file; else as ``bytes_of``.

    Parameters
    ----------
    path, most
        As for that.
    """
    return bytes_of(path, most).decode("utf-8", errors="replace")

"""Text of files that anybody may have given."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pccl.errors import InvalidArgumentError, UnavailableError

__all__ = ["text_of"]


def text_of(path: str | os.PathLike[str], most: int) -> str:
    """Return the text of a file, of which no more than ``most`` bytes are read.

    Parameters
    ----------
    path
        The file's. A pipe or a device could go on for ever, and is not waited for.
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
    # Without O_NONBLOCK, opening a pipe waits for whoever writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnavailableError(f"{Path(path)}: this is no file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)  # /proc says of all its files that they are empty
    if len(content) > most:
        raise InvalidArgumentError(f"{Path(path)} has more than {most} bytes")
    return content.decode("utf-8", errors="replace")

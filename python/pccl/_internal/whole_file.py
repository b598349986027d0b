# SPDX-License-Identifier: Apache-2.0
"""Atomic writes of files, with bounded waiting for pipes and devices."""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
import time
from pathlib import Path

__all__ = ["check_writable", "write_whole"]

_FOR_READER_S = 1.0  # wait for the reader of a pipe
_PATIENCE_S = 5.0  # wait for a blocked write
_MOST_LINKS = 8


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file atomically: concurrent readers get the complete old or new file.

    A missing folder is created. A link to a file is replaced, not followed. Pipes, character
    devices such as terminals, and descriptors of this process such as ``/dev/stdout`` are written
    directly; a write that blocks for 5 seconds fails. Sockets and block devices are rejected. After
    a failure no partial file remains, and the error names the file.
    """
    whole = content.encode() if isinstance(content, str) else content
    special = _open_special(file)
    if special is not None:
        with os.fdopen(special, "wb", buffering=0):
            _write_special(special, file, whole)
        return
    draft = _draft_of(file)
    try:
        with draft.open("xb") as out:
            out.write(whole)
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _named(error, file) from None


def check_writable(file: Path) -> None:
    """Check that ``write_whole`` would succeed now, before long work whose result is written.

    Raises
    ------
    OSError
        The write would fail; the error names the file.
    """
    special = _open_special(file)
    if special is not None:
        os.close(special)
        return
    draft = _draft_of(file)
    try:
        draft.open("xb").close()
        draft.unlink()
    except OSError as error:
        raise _named(error, file) from None


def _draft_of(file: Path) -> Path:
    """Return a temporary name in the folder of the file, unique per process and thread."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{threading.get_native_id()}")
        draft.unlink(missing_ok=True)  # left by an earlier process with this id, or a link
    except OSError as error:
        raise _named(error, file) from None
    return draft


def _named(error: OSError, file: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(file))


def _open_special(file: Path) -> int | None:
    """Open a target that is written in place; return None for a regular or missing file."""
    own = _own_descriptor(file)
    if own is not None:
        return os.dup(own)
    try:
        mode = file.stat().st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    if not stat.S_ISFIFO(mode) and not stat.S_ISCHR(mode):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a block device"
        raise OSError(errno.EINVAL, f"this is {kind}; name a file, a pipe or /dev/null", str(file))
    return _open_for_reader(file) if stat.S_ISFIFO(mode) else _open(file)


def _open(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _open_for_reader(pipe: Path) -> int:
    """Open a pipe, and wait up to 1 second for a reader."""
    until = time.monotonic() + _FOR_READER_S
    while True:
        try:
            return _open(pipe)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() >= until:
            raise OSError(errno.ENXIO, "this is a pipe, and nobody reads from it", str(pipe))
        time.sleep(0.005)


def _own_descriptor(file: Path) -> int | None:
    """Return the descriptor behind a path such as ``/dev/stdout`` or ``/dev/fd/3``.

    A new open of a descriptor that is a file would overwrite the file from its start.
    """
    folder = os.path.realpath("/proc/self/fd")
    for _ in range(_MOST_LINKS):
        parent = os.path.realpath(file.absolute().parent)
        if parent == folder:
            return int(file.name) if file.name.isdecimal() else None
        if not file.is_symlink():
            return None
        file = Path(parent) / os.readlink(file)  # noqa: PTH115
    return None


def _write_special(descriptor: int, file: Path, content: bytes) -> None:
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    left = memoryview(content)
    while left:
        if not ready.poll(_PATIENCE_S * 1000):
            reason = f"no reader has taken any bytes for {_PATIENCE_S:g} s"
            raise OSError(errno.ETIMEDOUT, reason, str(file))
        try:
            # After poll() reports POLLOUT, a pipe accepts PIPE_BUF bytes, also in blocking mode.
            left = left[os.write(descriptor, left[: select.PIPE_BUF]) :]
        except BlockingIOError:
            continue
        except OSError as error:
            raise _named(error, file) from None

"""Files that other processes may read, or lay links at, while they are written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(file: Path, content: str | bytes) -> None:
    """Write so that who reads at the same time finds the old or the new file, whole.

    Its folder is made where it is missing. Nothing is written through a link; what is there and is
    no file (a pipe, a terminal) gets the content as it is. Where it fails, nothing is left of it,
    and the error names the file.
    """
    whole = content.encode() if isinstance(content, str) else content
    if file.parent == Path("/dev") or (file.exists() and not file.is_file()):
        file.write_bytes(whole)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # of an earlier process of this number, or somebody's link
    try:
        with draft.open("xb") as out:
            out.write(whole)
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(file)) from None

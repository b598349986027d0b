"""Files that other processes may read, or lay links at, while they are written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_whole"]


def write_whole(file: Path, content: str | bytes) -> None:
    """Write so that who reads at the same time finds the old or the new file, whole.

    Its folder is made where it is missing. Nothing is written through a link.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # of an earlier process of this number, or somebody's link
    with draft.open("xb") as out:
        out.write(content.encode() if isinstance(content, str) else content)
    draft.replace(file)

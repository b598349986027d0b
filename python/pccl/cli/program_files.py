# SPDX-License-Identifier: Apache-2.0
"""Files with a program of a collective: capsules, MSCCL XML and MSCCL++ plans."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import _core
from pccl._internal import given_file
from pccl.capsule import Capsule
from pccl.capsule.programs import MOST_BYTES, MOST_TEXT

if TYPE_CHECKING:
    import os

    import matplotlib.figure

__all__ = ["drawn_conflict", "program_in"]

_FOR_RANKS = re.compile(r"\bfor (\d+) ranks: ")


def program_in(path: str | os.PathLike[str]) -> Capsule:
    """Return the capsule of a file; the suffix .xml or .json selects an importer.

    Raises
    ------
    Error
        As for ``Capsule.from_msccl``, ``from_mscclpp`` and ``load``.
    """
    read = {".xml": Capsule.from_msccl, ".json": Capsule.from_mscclpp}
    return read.get(Path(path).suffix, Capsule.load)(path)


def drawn_conflict(path: str | os.PathLike[str], message: str) -> matplotlib.figure.Figure | None:
    """Draw the steps that an error of ``program_in`` names; return None if it names no step.

    Parameters
    ----------
    path
        Path of the file.
    message
        Message of the error.

    Raises
    ------
    ImportError
        matplotlib is missing (``pip install matplotlib``).
    """
    from pccl.lang.error_plot import draw_conflict
    from pccl.lang.origin import places_in

    places = places_in(message)
    if not places:
        return None
    return draw_conflict(_schedule_in(Path(path), message), places, {}, message)


def _schedule_in(file: Path, message: str) -> _core.Schedule:
    if file.suffix == ".xml":
        return _core.unproven_msccl(given_file.text_of(file, MOST_TEXT), str(file))
    if file.suffix == ".json":
        return _core.unproven_mscclpp(given_file.text_of(file, MOST_TEXT), str(file))
    ranks = _FOR_RANKS.search(message)  # if the file is for several numbers of ranks
    return _core.unproven_schedule(
        given_file.bytes_of(file, MOST_BYTES), int(ranks[1]) if ranks else 0
    )

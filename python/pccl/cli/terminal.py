# SPDX-License-Identifier: Apache-2.0
"""What commands print besides their results: examples, complaints, and how far they are."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["complain", "examples", "print_json", "printable", "progress", "width"]


def examples(*lines: str) -> str:
    """Return the end of a command's help: lines that can be pasted into a shell."""
    return "\n".join(["Examples:", "", "\b", *lines])


def complain(message: str) -> None:
    """Print one line on stderr, without characters that change a terminal (of file names)."""
    print(f"pccl: {printable(' '.join(message.split()))}", file=sys.stderr)


def printable(text: str) -> str:
    """Return the text with escapes in place of characters that change a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def print_json(result: object) -> None:
    """Print one JSON object: what ``--json`` means in every command."""
    print(json.dumps(result))


def width() -> int:
    """Return the columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns


def _in_words(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


@contextlib.contextmanager
def progress(what: str, steps: int, seconds: float) -> Iterator[Callable[[], None]]:
    """Print on stderr the work ahead and its duration; on a terminal, show its progress.

    Gives a function to call after each of ``steps``.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    print(f"{what}: {steps} steps, about {_in_words(seconds)}", file=sys.stderr)
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else rows would go to stderr, not to their file
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)

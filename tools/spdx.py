# SPDX-License-Identifier: Apache-2.0
"""Check that each source file names its licence in its first five lines.

    spdx.py [--write] [FILE...]

Without files it looks at all sources that git tracks. With --write it inserts the line where it is
missing: first of all, but below a ``#!`` line and a declared encoding. A comment that follows is
set off by an empty line, as it is about the file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["csrc", "include", "python", "plugins", "tests", "tools", "cmake"]
FOLDERS += ["benchmarks", "examples", "docs"]
DATA = ("tests/data/", "tests/fuzz/corpus/", "benchmarks/results/")
TAG = "SPDX-License-Identifier:"
LICENCE = "Apache-2.0"
FIRST_LINES = 5

#: How a line of comment begins and ends.
STYLES = {
    **dict.fromkeys((".c", ".cc", ".cu", ".cuh", ".h", ".yang"), ("// ", "")),
    **dict.fromkeys((".cmake", ".py", ".pyi", ".sh"), ("# ", "")),
    ".map": ("/* ", " */"),
}
# Lines that count only where they are: that of the interpreter, and the encoding (PEP 263).
KEEPS_ITS_PLACE = re.compile(r"#!|[ \t\f]*#.*?coding[:=]")


def style_of(path: Path) -> tuple[str, str] | None:
    """Return how a line of comment begins and ends in a file; None for what is no source."""
    if path.name == "CMakeLists.txt":
        return STYLES[".cmake"]
    return STYLES.get(Path(path.stem).suffix if path.suffix == ".in" else path.suffix)


def named_licence(text: str) -> str | None:
    """Return the licence that the first lines of a file name; None where they name none."""
    for line in text.splitlines()[:FIRST_LINES]:
        _, tag, licence = line.partition(TAG)
        if tag:
            return licence.strip(" */")
    return None


def with_licence(text: str, style: tuple[str, str]) -> str:
    """Return the text of a file with the line inserted."""
    begin, end = style
    lines = text.splitlines(keepends=True)
    kept = 0
    while kept < min(2, len(lines)) and KEEPS_ITS_PLACE.match(lines[kept]):
        kept += 1
    head = "".join(lines[:kept])
    head += "\n" if head and not head.endswith("\n") else ""
    rest = "".join(lines[kept:])
    is_about_the_file = rest.startswith(begin.strip())
    return f"{head}{begin}{TAG} {LICENCE}{end}\n" + ("\n" if is_about_the_file else "") + rest


def sources(root: Path) -> Iterator[Path]:
    """Give the source files that git tracks, without data."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--", "CMakeLists.txt", *FOLDERS]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        is_own = path.is_file() and not path.is_symlink() and not name.startswith(DATA)
        if is_own and style_of(path):
            yield path


def main() -> int:
    """Print a line for each file that lacks the licence, or insert it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="insert the line where it is missing")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    faults = []
    for path in arguments.files or sources(ROOT):
        shown, style = os.path.relpath(path), style_of(path)
        if style is None:
            faults.append(f"{shown}: its comments are not known: add its suffix to STYLES")
            continue
        text = path.read_text(encoding="utf-8")
        named = named_licence(text)
        if named is None and arguments.write:
            path.write_text(with_licence(text, style), encoding="utf-8")
        elif named is None:
            faults.append(
                f"{shown}: no '{TAG} {LICENCE}' in its first {FIRST_LINES} lines: add --write"
            )
        elif named != LICENCE:
            faults.append(f"{shown}: its licence is '{named}', and not {LICENCE}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Look for names that clash or are idle where files of a folder are read as one.

    check_names.py [folders, else csrc and tests]

Builds compile several files of a folder at a time (cmake/pccl_unity.cmake), where names meet that
two of them define in anonymous namespaces; overloads, too, since their addresses are taken. And
clang-tidy reads them so: a name that one declares with ``using``, and only another uses, looks used
to it.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from cpp_functions import without_noise

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)
_DEFINITION = re.compile(
    r"^(?:(?:class|struct|union|enum(?: class)?) (\w+)[^;\n]*\{"
    r"|\w[\w:<>,&* \[\]\n]*?[ *&>](\w+)(?:\(|\{| =|\[|;))",
    re.MULTILINE,
)


_USING = re.compile(r"^using [\w:]+::(\w+);", re.MULTILINE)


def defined_names(path: Path) -> Iterator[str]:
    """Give what a file defines in its anonymous namespaces."""
    for region in _ANONYMOUS.findall(path.read_text()):
        for found in _DEFINITION.finditer(without_noise(region)):
            if not found[0].startswith("using "):
                yield found[1] or found[2]


def clashes(folder: Path) -> Iterator[str]:
    """Give a line for each name that several files of a folder define."""
    files = defaultdict(set)
    for path in sorted(folder.glob("*.cc")):
        for name in defined_names(path):
            files[name].add(path.name)
    for name, owners in files.items():
        if len(owners) > 1:
            yield f"{folder}: {name} is defined in {' and '.join(sorted(owners))}"


def idle_usings(path: Path) -> Iterator[str]:
    """Give a line for each name that a file declares with ``using``, and does not use itself."""
    text = without_noise(path.read_text())
    for name in _USING.findall(text):
        if not re.search(rf"\b{name}\b", _USING.sub("", text)):
            yield f"{path}: using {name}, which is not used there"


def main() -> None:
    """Print what is wrong in all folders, and fail where something is."""
    roots = sys.argv[1:] or ["csrc", "tests"]
    files = sorted(path for root in roots for path in Path(root).rglob("*.cc"))
    found = [line for folder in sorted({path.parent for path in files}) for line in clashes(folder)]
    found += [line for path in files for line in idle_usings(path)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

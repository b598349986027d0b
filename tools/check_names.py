"""Look for names that two files of a folder of csrc/ define in anonymous namespaces.

A wheel is compiled several files of a folder at a time (cmake/pccl_unity.cmake), where such names
meet; overloads, too, since their addresses are taken.
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


def main() -> None:
    """Print the clashes of all folders, and fail where there are some."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "csrc")
    folders = sorted({path.parent for path in root.rglob("*.cc")})
    found = [line for folder in folders for line in clashes(folder)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
